package ioengine

import (
	"fmt"
	"math"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// Verification: writes get headers, and when a lane has written its part (or every so many writes) it makes the same
// operations again from their seed, reads where they went and checks what it finds. Nothing is kept for a write, because
// operation n and its content are functions of seed, stream and n; only where writes may overlap a table of one window of
// the region at a time says which write was the last (verify_replay.go). verifier.go is the state of a lane.
//
// A job that only reads checks whatever it reads, and does not know who wrote it. Reads among writes are not checked, as
// in fio, because what they meet may never have been written.

// verification is how a job marks and checks its data.
type verification struct {
	format         verify.Format
	after, only    bool // read back what was written; what an earlier run wrote
	reads          bool // check every read
	fatal, dump    bool
	tolerant       bool // a wrong block is counted and passed over
	strict         verify.Strict
	backlog, batch int
	loops          int
	keepCache      bool // invalidate=0
	trims          *trimming
	limit          *fiojob.VerifyLimit // with only: what was written; nil: all
}

// compileVerification works out how a job verifies, nil when it does not.
func (p *program) compileVerification(j *fiojob.Job, s *jobSpec) *verification {
	method, known := verify.MethodOf(j.Verify.Method)
	switch {
	case !known:
		return nil
	case s.replay != nil:
		p.lacking(j, "verify", j.Verify.Method+" with read_iolog")
		return nil
	case j.BlockUnaligned || j.BlockByOrder:
		p.lacking(j, "verify", j.Verify.Method+" with bs_unaligned or bs_is_seq_rand")
		return nil
	case s.trims:
		p.lacking(j, "verify", j.Verify.Method+" with "+j.ReadWrite)
		return nil
	case s.kind.Dataless():
		p.issues.Warnf(p.optionPos(j, "verify"), "nothing-to-verify", "job %q: ioengine=%s stores nothing, so nothing is verified", j.Name, j.IOEngine)
		return nil
	}
	v := &verification{
		only: j.Verify.Only && s.writes, reads: s.reads && !s.writes, fatal: j.Verify.Fatal, dump: j.Verify.Dump,
		tolerant: j.ContinueOnError == "verify" || j.ContinueOnError == "all", loops: max(1, j.Loops),
		strict:    verify.Strict{Seed: j.Verify.HeaderSeed, Number: j.Verify.WriteSequence},
		keepCache: j.Layout.KeepCache,
	}
	v.after = v.only || s.writes && j.Verify.After
	if v.only {
		// Another tool, or another job, may have written it; who wants more says so.
		v.strict = verify.Strict{Seed: v.strict.Seed && j.Has("verify_header_seed"), Number: v.strict.Number && j.Has("verify_write_sequence")}
	}
	if v.after && !v.only && j.Verify.Backlog > 0 {
		v.backlog, v.batch = j.Verify.Backlog, min(max(j.Verify.BacklogBatch, 0), j.Verify.Backlog)
		if v.batch == 0 {
			v.batch = v.backlog
		}
	}
	v.format = verify.Format{
		Method: method, HeaderOffset: j.Verify.HeaderOffsetBytes, Interval: verifyInterval(j),
		Pattern: verify.Pattern{Bytes: j.Verify.Pattern, Offsets: j.Verify.PatternOffsets, Interval: j.Verify.PatternInterval},
	}
	if err := v.format.Validate(); err != nil {
		p.issues.Errorf(p.optionPos(j, "verify"), "verify", "job %q: %v", j.Name, err)
		return nil
	}
	v.trims = p.compileTrimming(j)
	if v.limit = j.Verify.Limit; v.limit != nil && (v.after && s.reads || s.trims || v.trims != nil || j.Verify.Only && v.limit.Writes == 0) {
		p.lacking(j, "verify_state_load", "1 with rw="+j.ReadWrite)
	}
	p.warnOfVerification(j, s, v)
	return v
}

// verifyInterval is the distance of headers, as fio 3.33 settles it: what is asked for where it divides all blocks of the
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

// warnOfVerification says what somebody who knows fio would not expect.
func (p *program) warnOfVerification(j *fiojob.Job, s *jobSpec, v *verification) {
	pos := p.optionPos(j, "verify")
	switch {
	case v.only && s.runtime > 0:
		p.issues.Warnf(pos, "verify-only", "job %q: verify_only reads back all that the job would write, however long it takes", j.Name)
	case v.after && s.runtime > 0:
		p.issues.Warnf(pos, "verify-after-runtime", "job %q: when its runtime is over it reads back what it wrote, which takes time "+
			"of its own; fio would not verify at all", j.Name)
	}
	if m := v.format.Method; !m.Covers() && m == verify.SHA512 && (v.reads || v.only) {
		p.issues.Warnf(pos, "weak-digest", "job %q: what fio stores as sha512 is no digest: of each interval only its last bytes and some of "+
			"its first are checked; sha3-512 or crc32c check all of it", j.Name)
	}
	if v.after && max(1, j.NumJobs) > 1 && j.OffsetIncrement == (fiojob.Size{}) {
		v.strict = verify.Strict{}
		p.issues.Warnf(pos, "verify-shared", "job %q: its %d clones write to the same places; whose write is there cannot be checked, and writes "+
			"that overlap in time may look damaged", j.Name, j.NumJobs)
	}
}

// unverify leaves verification out where a back end stores nothing, whatever the job says.
func (p *program) unverify() {
	for i := range p.jobs {
		if p.jobs[i].kind == backend.KindNull {
			p.jobs[i].verify = nil
		}
	}
}

// changes tells whether a job changes its devices.
func (s *jobSpec) changes() bool {
	return s.writes && !s.verifiesOnly() || s.trims || s.kind == backend.KindFalloc
}

func (s *jobSpec) verifiesOnly() bool { return s.verify != nil && s.verify.only }

// readsBack tells whether a job reads although no operation of it is a read.
func (s *jobSpec) readsBack() bool { return s.verify != nil && s.verify.after }

// ErrnoMismatch is the number that stands for data that is not what was written: EILSEQ on Linux, as in fio.
const ErrnoMismatch = 84

// mismatchError says where data is not what was written.
type mismatchError struct{ text string }

func (m *mismatchError) Error() string { return m.text }

// Unwrap gives the error its number, which reports carry.
func (m *mismatchError) Unwrap() error { return syscall.Errno(ErrnoMismatch) }

// describe is one line about one wrong interval.
func (v *verifier) describe(name string, m *verify.Mismatch, want *verify.Stamp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "file %q, offset %d: %d bytes are not what was written there: %s", name, m.Offset, m.Length, m.Fault)
	if v.spec.format.HeaderBytes() == 0 {
		return b.String()
	}
	h := &m.Header
	fmt.Fprintf(&b, "; found magic %04x, length %d, offset %d, seed %016x, number %d, thread %d", h.Magic, h.Length, h.Offset, h.Seed, h.Number, h.Thread)
	fmt.Fprintf(&b, "; expected magic acca, length %d, offset %d", m.Length, m.Offset)
	if want != nil && v.spec.strict.Seed {
		seed := want.Seed
		if len(v.spec.format.Pattern.Bytes) > 0 {
			seed = 0
		}
		fmt.Fprintf(&b, ", seed %016x, number %d", seed, uint16(want.Number))
	}
	return b.String()
}

func verificationError(text string) error {
	return &diag.Error{
		Code: "data-mismatch", Message: "verify data", Err: &mismatchError{text}, Exit: diag.ExitUndecided,
		Hint: "verify_dump=1 puts what was read and what was expected into files; continue_on_error=verify counts and goes on",
	}
}

// verifiedUnit is the largest length of which all operations of a stream and all headers are multiples, from the start of
// its region on.
func (s *jobSpec) verifiedUnit(r *pattern.Region) int64 {
	unit := pattern.GCD(s.sizes[interval.Write].Smallest, s.align(int(interval.Write)))
	for _, n := range []int64{s.verify.format.Interval, r.ZoneStride, s.job.Sequence} {
		if n < 0 {
			n = -n
		}
		if n > 0 && !(n == s.job.Sequence && s.random) {
			unit = pattern.GCD(unit, n)
		}
	}
	return unit
}

// rewind lets a clone that verifies each of its loops do the next one.
func rewind(q *pattern.Sequence, spec *cloneSpec, job *jobSpec) {
	if !job.readsBack() {
		return
	}
	for i := range q.Streams {
		if amount := spec.streams[i].amount; amount > 0 {
			s := &q.Streams[i]
			if s.Left = amount / int64(job.verify.loops); !job.job.IOSize.Set {
				s.Passes.More = 0
			}
			s.Begin()
		}
	}
}
