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
	{name: "verify", does: "how blocks are marked and checked; pattern_hdr, of versions after 3.33, is pattern behind a header", apply: setVerify},
	{name: "do_verify", does: "read back what was written", apply: boolean(func(j *Job) *bool { return &j.Verify.After })},
	{name: "verify_only", does: "read back what an earlier run wrote, and write nothing", apply: flag(func(j *Job) *bool { return &j.Verify.Only })},
	{name: "verify_fatal", does: "end at the first block that is wrong", apply: boolean(func(j *Job) *bool { return &j.Verify.Fatal })},
	{name: "verify_dump", does: "put wrong blocks into files", apply: boolean(func(j *Job) *bool { return &j.Verify.Dump })},
	{name: "verify_interval", does: "distance of headers; a block where it does not divide blocks", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.IntervalBytes }, verifyIntervalMin, syntax.BlockBytesMax)},
	{name: "verify_offset", does: "position of a header in its interval", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.HeaderOffsetBytes }, verifyOffsetMin, syntax.BlockBytesMax)},
	{name: "verify_pattern", does: "what blocks are filled with; %o is the offset of the block", apply: setVerifyPattern},
	{name: "verify_pattern_interval", does: "the pattern restarts every so many bytes, with their offset for %o; of versions after 3.33", apply: bytesOf(func(j *Job) *int64 { return &j.Verify.PatternInterval }, 0, syntax.BlockBytesMax)},
	{name: "verify_backlog", does: "read back after so many writes instead of at the end", apply: count(func(j *Job) *int { return &j.Verify.Backlog }, 0, verifyBacklogMax)},
	{name: "verify_backlog_batch", does: "how many of them to read back at a time; all", apply: count(func(j *Job) *int { return &j.Verify.BacklogBatch }, 0, verifyBacklogMax)},
	{name: "trim_percentage", does: "share of verified writes that are trimmed again", apply: count(func(j *Job) *int { return &j.Verify.Trims.Percent }, 0, 100)},
	{name: "trim_backlog", does: "trim once so many writes have collected", apply: count(func(j *Job) *int { return &j.Verify.Trims.Backlog }, 0, verifyBacklogMax)},
	{name: "trim_backlog_batch", does: "how many of them to look at, the oldest first; all", apply: count(func(j *Job) *int { return &j.Verify.Trims.BacklogBatch }, 0, verifyBacklogMax)},
	{name: "trim_verify_zero", does: "what was trimmed has to be zeroes", apply: not(func(j *Job) *bool { return &j.Verify.Trims.Unchecked })},
	{name: "verify_state_save", elsewhere: syntax.Ignored, why: "verification always makes the operations again from their seed",
		does: "leave a file that says how far the writes came, also where the job was not stopped", apply: setStateSave},
	{name: "verify_state_load", elsewhere: syntax.Refused, why: notHost, does: "with verify_only: read back what such a file says was written", apply: boolean(func(j *Job) *bool { return &j.Verify.StateLoad })},
	{name: "verify_header_seed", does: "the seed of a header has to be that of the write", apply: boolean(func(j *Job) *bool { return &j.Verify.HeaderSeed })},
	{name: "verify_write_sequence", does: "the number of a header has to be that of the write", apply: boolean(func(j *Job) *bool { return &j.Verify.WriteSequence })},
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
