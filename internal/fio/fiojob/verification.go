package fiojob

import (
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Verification defines how a job marks what it writes and checks what it reads.
type Verification struct {
	Method string // fio's name of it; "" for none
	// After reads back what was written (do_verify), Only does so without writing.
	After, Only bool
	// Fatal ends a job at the first mismatching block. Otherwise the job checks all blocks, and then fails.
	Fatal bool
	Dump  bool // saves such blocks in files
	// IntervalBytes is the distance of headers, 0 for one in each block; HeaderOffsetBytes is the offset of each in its
	// interval.
	IntervalBytes, HeaderOffsetBytes int64
	// Pattern fills blocks; the eight bytes at each of PatternOffsets hold the offset of the block.
	Pattern        []byte `json:",omitempty"`
	PatternOffsets []int  `json:",omitempty"`
	// PatternInterval restarts the pattern after this many bytes of a block; 0: once per block.
	PatternInterval int64 `json:",omitzero"`
	// Backlog reads back after this many writes instead of at the end, BacklogBatch of them at a time; 0: at the end, all.
	Backlog, BacklogBatch int
	Trims                 VerifyTrims `json:",omitzero"`
	// StateLoad reads the saved progress of an earlier run. A run saves its progress when it is stopped, with StateSave
	// always and with StateNever never.
	StateLoad, StateSave, StateNever bool `json:",omitzero"`
	// Limit is what an earlier run wrote; nil: everything.
	Limit *VerifyLimit `json:",omitempty"`
	// Uncertain: other clones write to the same places, or io_size is a share of a file that may have had another length,
	// so that the job does not define how many bytes were written.
	Uncertain bool
	// HeaderSeed and WriteSequence define which header fields must match the write.
	HeaderSeed, WriteSequence bool
}

// VerifyLimit defines which writes of a job were complete when it ended: the first Writes of them, except those of the last
// Depth that are not in Completed.
type VerifyLimit struct {
	Writes, Depth uint64
	Completed     []VerifyPlace
}

// VerifyPlace is the place of a write: the number of the file in its clone, and the offset.
type VerifyPlace struct{ File, Offset int64 }

// VerifyTrims defines which of the verified writes are trimmed again.
type VerifyTrims struct {
	Percent               int  // of the writes; 0: none
	Backlog, BacklogBatch int  // after this many collected writes, this many of the oldest are considered; 0: all
	Unchecked             bool // trimmed blocks need not read as zeroes
}

var verifyMethods = []string{
	"0", "md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "sha1", "sha256", "sha512", "sha3-224", "sha3-256",
	"sha3-384", "sha3-512", "xxhash", "meta", "pattern", "null",
}

var verification = []spec{
	{name: "verify", does: "method of marking and checking blocks; pattern_hdr, from fio after 3.33, is pattern preceded by a header", apply: setVerify},
	{name: "do_verify", does: "read back the written data", apply: boolean(func(j *Job) *bool { return &j.Verify.After })},
	{name: "verify_only", does: "read back the data of an earlier run, without writing", apply: flag(func(j *Job) *bool { return &j.Verify.Only })},
	{name: "verify_fatal", does: "stop at the first bad block", apply: boolean(func(j *Job) *bool { return &j.Verify.Fatal })},
	{name: "verify_dump", does: "write bad blocks to files", apply: boolean(func(j *Job) *bool { return &j.Verify.Dump })},
	{name: "verify_interval", does: "distance of headers; one header per block if it does not divide all block sizes", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.IntervalBytes }, verifyIntervalMin, syntax.BlockBytesMax)},
	{name: "verify_offset", does: "position of a header in its interval", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.HeaderOffsetBytes }, verifyOffsetMin, syntax.BlockBytesMax)},
	{name: "verify_pattern", does: "fill pattern of blocks; %o is the offset of the block", apply: setVerifyPattern},
	{name: "verify_pattern_interval", does: "bytes after which the pattern restarts, with the offset of that position for %o; from fio after 3.33", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.PatternInterval }, 0, syntax.BlockBytesMax)},
	{name: "verify_backlog", does: "number of writes after which to read back, instead of at the end", apply: count(func(j *Job) *int { return &j.Verify.Backlog }, 0, verifyBacklogMax)},
	{name: "verify_backlog_batch", does: "number of writes to read back at a time; default: all", apply: count(func(j *Job) *int { return &j.Verify.BacklogBatch }, 0, verifyBacklogMax)},
	{name: "trim_percentage", does: "share of verified writes to trim", apply: count(func(j *Job) *int { return &j.Verify.Trims.Percent }, 0, 100)},
	{name: "trim_backlog", does: "number of verified writes after which to trim", apply: count(func(j *Job) *int { return &j.Verify.Trims.Backlog }, 0, verifyBacklogMax)},
	{name: "trim_backlog_batch", does: "number of writes to consider for a trim, oldest first; default: all", apply: count(func(j *Job) *int { return &j.Verify.Trims.BacklogBatch }, 0, verifyBacklogMax)},
	{name: "trim_verify_zero", does: "trimmed blocks must read back as zeros", apply: not(func(j *Job) *bool { return &j.Verify.Trims.Unchecked })},
	{name: "verify_state_save", elsewhere: syntax.Ignored, why: "verification always regenerates the operations from their seed",
		does: "save the progress of the writes to a file, even if the job was not stopped", apply: setStateSave},
	{name: "verify_state_load", elsewhere: syntax.Refused, why: notHost, does: "with verify_only: read back the writes recorded in a state file", apply: boolean(func(j *Job) *bool { return &j.Verify.StateLoad })},
	{name: "verify_header_seed", does: "the seed in a header must match that of the write", apply: boolean(func(j *Job) *bool { return &j.Verify.HeaderSeed })},
	{name: "verify_write_sequence", does: "the number in a header must match that of the write", apply: boolean(func(j *Job) *bool { return &j.Verify.WriteSequence })},
}

// fio's own bounds, and a bound on the memory of a backlog.
const (
	verifyIntervalMin = 80
	verifyOffsetMin   = 40
	verifyBacklogMax  = 1 << 24
)

func setStateSave(j *Job, a *arg) {
	v := &j.Verify
	boolean(func(*Job) *bool { return &v.StateSave })(j, a)
	v.StateNever = !v.StateSave
}

// setVerify reads verify.
func setVerify(j *Job, a *arg) {
	if a.Text == "pattern_hdr" {
		noBlank(j, a)
		a.Option.Exact, j.Verify.Method = a.Text, a.Text
		return
	}
	v, ok := a.Choice(a.Text, verifyMethods, nil)
	if !ok {
		return
	}
	a.Option.Exact = v
	if j.Verify.Method = v; v == "0" {
		j.Verify.Method = ""
	}
}
