package ioengine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// ioengine=sg sends SCSI commands to a disk past the block layer's page cache, merging and splitting. They go through the
// descriptor of the disk's block device, which is what was proven and is held where the job writes; a generic device
// (/dev/sg0) stands for the disk that it is. Each command in flight waits in a thread.

// compileSCSI refuses what has no meaning for SCSI commands, which know no flags of the kernel's calls.
func (p *program) compileSCSI(j *fiojob.Job, s *jobSpec) {
	if s.kind != kindSCSI {
		return
	}
	refuse := func(key, value string, is bool) {
		if is {
			p.lacking(j, key, value+" with ioengine=sg")
		}
	}
	refuse("sync", j.Sync, j.Sync != "" && j.Sync != "none")
	refuse("nowait", "1", j.NoWait)
	refuse("uncached", "1", j.Uncached)
	refuse("atomic", "1", j.Atomic)
	refuse("write_hint", j.WriteHint, j.WriteHint != "" && j.WriteHint != "none")
	refuse("sync_file_range", "", j.SyncFileRange.Every > 0)
	plain := s.job.Control.SCSI.WriteMode
	plainWrites := plain == "" || plain == fiojob.SCSIWrite || plain == fiojob.SCSIWriteAndVerify
	refuse("sg_write_mode", plain+" and verify", !plainWrites && j.Verify.Method != "")
}

// transferMax is the most data that one command of the job moves, where it moves more than a block: trims name ranges, and the other
// modes of writing send one block or none.
func (s *jobSpec) transferMax() int64 {
	largest := s.sizes[interval.Read].largest
	switch s.job.Control.SCSI.WriteMode {
	case "", fiojob.SCSIWrite, fiojob.SCSIWriteAndVerify, fiojob.SCSICompare:
		largest = max(largest, s.sizes[interval.Write].largest, s.sequel.largest)
	}
	return largest
}

// checkSCSI refuses a device that takes no SCSI commands, or not such as the job has.
func (s *jobSpec) checkSCSI(device load.Device, f *file) error {
	if s.kind != kindSCSI {
		return nil
	}
	blockBytes, most, err := f.toSCSI()
	if err != nil {
		return &diag.Error{
			Code: "no-scsi-disk", Message: fmt.Sprintf("job %q: ioengine=sg on device %q", s.job.Name, device.Name), Err: err,
			Hint: "libaio, io_uring and psync work on every device", Exit: diag.ExitUnavailable,
		}
	}
	f.direct, f.align = true, blockBytes
	if largest := s.transferMax(); most > 0 && largest > most {
		return &diag.Error{
			Code: "block-too-large", Exit: diag.ExitData,
			Message: fmt.Sprintf("job %q: blocks of %d bytes; one SCSI command moves at most %d to or from device %q", s.job.Name, largest, most, device.Name),
			Hint:    "make bs smaller",
		}
	}
	return nil
}
