package program

import (
	"math"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// Verification is how a job marks and checks its data.
type Verification struct {
	Format         verify.Format
	After, Only    bool // read back what was written; what an earlier run wrote
	Reads          bool // check every read
	Fatal, Dump    bool
	Tolerant       bool // a wrong block is counted and passed over
	Strict         verify.Strict
	Backlog, Batch int
	Loops          int
	KeepCache      bool // invalidate=0
	Trims          *Trimming
	Limit          *fiojob.VerifyLimit // with only: what was written; nil: all
}

// compileVerification works out how a job verifies, nil when it does not.
func (p *Program) compileVerification(j *fiojob.Job, s *Job) *Verification {
	method, known := verify.MethodOf(j.Verify.Method)
	switch {
	case !known:
		return nil
	case s.Replay != nil:
		p.lacking(j, "verify", j.Verify.Method+" with read_iolog")
		return nil
	case j.BlockUnaligned || j.BlockByOrder:
		p.lacking(j, "verify", j.Verify.Method+" with bs_unaligned or bs_is_seq_rand")
		return nil
	case s.Trims:
		p.lacking(j, "verify", j.Verify.Method+" with "+j.ReadWrite)
		return nil
	case s.Kind.Dataless():
		p.Issues.Warnf(p.optionPos(j, "verify"), "nothing-to-verify", "job %q: ioengine=%s stores nothing, so nothing is verified", j.Name, j.IOEngine)
		return nil
	}
	v := &Verification{
		Only: j.Verify.Only && s.Writes, Reads: s.Reads && !s.Writes, Fatal: j.Verify.Fatal, Dump: j.Verify.Dump,
		Tolerant: j.ContinueOnError == "verify" || j.ContinueOnError == "all", Loops: max(1, j.Loops),
		Strict:    verify.Strict{Seed: j.Verify.HeaderSeed, Number: j.Verify.WriteSequence},
		KeepCache: j.Layout.KeepCache,
	}
	v.After = v.Only || s.Writes && j.Verify.After
	if v.Only {
		// Another tool, or another job, may have written it; who wants more says so.
		v.Strict = verify.Strict{Seed: v.Strict.Seed && j.Has("verify_header_seed"), Number: v.Strict.Number && j.Has("verify_write_sequence")}
	}
	if v.After && !v.Only && j.Verify.Backlog > 0 {
		v.Backlog, v.Batch = j.Verify.Backlog, min(max(j.Verify.BacklogBatch, 0), j.Verify.Backlog)
		if v.Batch == 0 {
			v.Batch = v.Backlog
		}
	}
	v.Format = verify.Format{
		Method: method, HeaderOffset: j.Verify.HeaderOffsetBytes, Interval: verifyInterval(j),
		Pattern: verify.Pattern{Bytes: j.Verify.Pattern, Offsets: j.Verify.PatternOffsets, Interval: j.Verify.PatternInterval},
	}
	if err := v.Format.Validate(); err != nil {
		p.Issues.Errorf(p.optionPos(j, "verify"), "verify", "job %q: %v", j.Name, err)
		return nil
	}
	v.Trims = p.compileTrimming(j)
	if v.Limit = j.Verify.Limit; v.Limit != nil && (v.After && s.Reads || s.Trims || v.Trims != nil || j.Verify.Only && v.Limit.Writes == 0) {
		p.lacking(j, "verify_state_load", "1 with rw="+j.ReadWrite)
	}
	p.warnOfVerification(j, s, v)
	return v
}

// verifyInterval is the distance of headers, as fio 3.33 settles it: the requested one where it divides all blocks of the
// job, else what all of them are multiples of.
func verifyInterval(j *fiojob.Job) int64 {
	low, high := int64(math.MaxInt64), int64(0)
	for _, split := range j.BlockSizes(fiojob.Write) {
		low, high = min(low, split.Bytes), max(high, split.Bytes)
	}
	n := j.Verify.IntervalBytes
	if n == 0 || n > low {
		n = low
	}
	if low%n != 0 || high%n != 0 {
		n = pattern.GCD(low, high)
	}
	return n
}

// warnOfVerification says what a user of fio would not expect.
func (p *Program) warnOfVerification(j *fiojob.Job, s *Job, v *Verification) {
	pos := p.optionPos(j, "verify")
	switch {
	case v.Only && s.Runtime > 0:
		p.Issues.Warnf(pos, "verify-only", "job %q: verify_only reads back all that the job would write, however long it takes", j.Name)
	case v.After && s.Runtime > 0:
		p.Issues.Warnf(pos, "verify-after-runtime", "job %q: when its runtime is over it reads back what it wrote, which takes time "+
			"of its own; fio would not verify at all", j.Name)
	}
	if m := v.Format.Method; !m.Covers() && m == verify.SHA512 && (v.Reads || v.Only) {
		p.Issues.Warnf(pos, "weak-digest", "job %q: what fio stores as sha512 is no digest: of each interval only its last bytes and some of "+
			"its first are checked; sha3-512 or crc32c check all of it", j.Name)
	}
	if v.After && max(1, j.NumJobs) > 1 && j.OffsetIncrement == (fiojob.Size{}) {
		v.Strict = verify.Strict{}
		p.Issues.Warnf(pos, "verify-shared", "job %q: its %d clones write to the same places; whose write is there cannot be checked, and writes "+
			"that overlap in time may look damaged", j.Name, j.NumJobs)
	}
}

// Unverify leaves verification out where a back end stores nothing, whatever the job says.
func (p *Program) Unverify() {
	for i := range p.Jobs {
		if p.Jobs[i].Kind == backend.KindNull {
			p.Jobs[i].Verify = nil
		}
	}
}

// changes reports whether a job changes its devices.
func (s *Job) changes() bool {
	return s.Writes && !s.VerifiesOnly() || s.Trims || s.Kind == backend.KindFalloc
}

func (s *Job) VerifiesOnly() bool { return s.Verify != nil && s.Verify.Only }

// ReadsBack reports whether a job reads although no operation of it is a read.
func (s *Job) ReadsBack() bool { return s.Verify != nil && s.Verify.After }

// Trimming is what a job says of it.
type Trimming struct {
	Percent        uint64
	Backlog, Batch int
	Zeroes         bool
}

// compileTrimming works it out, nil where nothing is trimmed.
func (p *Program) compileTrimming(j *fiojob.Job) *Trimming {
	t := &j.Verify.Trims
	if t.Percent == 0 {
		return nil
	}
	out := &Trimming{Percent: uint64(t.Percent), Backlog: max(1, t.Backlog), Batch: t.BacklogBatch, Zeroes: !t.Unchecked}
	if out.Batch <= 0 || out.Batch > out.Backlog {
		out.Batch = out.Backlog
	}
	return out
}

// TrimsBack reports whether writes of a job are trimmed again.
func (s *Job) TrimsBack() bool { return s.Verify != nil && s.Verify.Trims != nil && !s.Verify.Only }

// DoneAs reports whether an operation that was made again, the n-th of its lane from 1, was complete when the run ended that did it.
func (v *Verification) DoneAs(n uint64, stream int32, offset int64) bool {
	if n+v.Limit.Depth <= v.Limit.Writes {
		return true
	}
	for _, c := range v.Limit.Completed {
		if c.File == int64(stream) && c.Offset == offset {
			return true
		}
	}
	return false
}
