package ioengine

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Verification: writes get headers, and when a lane has written its part (or every so many writes) it makes the same
// operations again from their seed, reads where they went and checks what it finds. Nothing is kept for a write, because
// operation n and its content are functions of seed, stream and n; only where writes may overlap a table of one window of
// the region at a time says which write was the last (verify_replay.go). verifier.go is the state of a lane.
//
// A job that only reads checks whatever it reads, and does not know who wrote it. Reads among writes are not checked, as
// in fio, because what they meet may never have been written.

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
	if v.spec.Format.HeaderBytes() == 0 {
		return b.String()
	}
	h := &m.Header
	fmt.Fprintf(&b, "; found magic %04x, length %d, offset %d, seed %016x, number %d, thread %d", h.Magic, h.Length, h.Offset, h.Seed, h.Number, h.Thread)
	fmt.Fprintf(&b, "; expected magic acca, length %d, offset %d", m.Length, m.Offset)
	if want != nil && v.spec.Strict.Seed {
		seed := want.Seed
		if len(v.spec.Format.Pattern.Bytes) > 0 {
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
func verifiedUnit(s *program.Job, r *pattern.Region) int64 {
	unit := pattern.GCD(s.Sizes[interval.Write].Smallest, s.Align(int(interval.Write)))
	for _, n := range []int64{s.Verify.Format.Interval, r.ZoneStride, s.Fio.Sequence} {
		if n < 0 {
			n = -n
		}
		if n > 0 && !(n == s.Fio.Sequence && s.Random) {
			unit = pattern.GCD(unit, n)
		}
	}
	return unit
}

// rewind lets a clone that verifies each of its loops do the next one.
func rewind(q *pattern.Sequence, spec *program.Clone, job *program.Job) {
	if !job.ReadsBack() {
		return
	}
	for i := range q.Streams {
		if amount := spec.Streams[i].Amount; amount > 0 {
			s := &q.Streams[i]
			if s.Left = amount / int64(job.Verify.Loops); !job.Fio.IOSize.Set {
				s.Passes.More = 0
			}
			s.Begin()
		}
	}
}
