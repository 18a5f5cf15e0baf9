package fiojob

// SCSI is what a job with ioengine=sg asks of a disk beside plain reads and writes.
type SCSI struct {
	ReadThrough  bool   // reads go past the disk's cache (FUA)
	WriteThrough bool   // writes do
	WriteMode    string // one of SCSI…, "" is SCSIWrite
}

// What the writes of a job with ioengine=sg are.
const (
	SCSIWrite          = "write"
	SCSIWriteAndVerify = "write_and_verify"
	SCSIWriteSame      = "write_same"      // one logical block, over and over
	SCSIWriteSameNDOB  = "write_same_ndob" // without data: zeroes
	SCSIVerify         = "verify_bytchk_00"
	SCSICompare        = "verify_bytchk_01" // with the data of the job
	SCSICompareSame    = "verify_bytchk_11" // with one logical block, over and over
)

const onlySG = "with ioengine=sg: "

var scsiOptions = []spec{
	{name: "readfua", does: onlySG + "reads come from the medium and not from the disk's cache", apply: boolean(func(j *Job) *bool { return &j.Control.SCSI.ReadThrough })},
	{name: "writefua", does: onlySG + "writes are on the medium when they are complete", apply: boolean(func(j *Job) *bool { return &j.Control.SCSI.WriteThrough })},
	{name: "sg_write_mode", does: onlySG + "which command a write is: WRITE, WRITE AND VERIFY, WRITE SAME, VERIFY", apply: setWriteMode},
}

func setWriteMode(j *Job, a *arg) {
	modes := []string{
		SCSIWrite, SCSIWriteAndVerify, SCSIWriteSame, SCSIWriteSameNDOB, SCSIVerify, SCSICompare, SCSICompareSame, "write_stream",
	}
	v, ok := a.choice(a.text, modes, map[string]string{"verify": SCSIWriteAndVerify, "same": SCSIWriteSame})
	if !ok {
		return
	}
	if j.Control.SCSI.WriteMode = v; v == "write_stream" {
		a.delegate("only fio has streams of SCSI")
	}
}
