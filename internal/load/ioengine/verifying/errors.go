package verifying

import (
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// ErrnoMismatch is the error number of a verification mismatch: EILSEQ on Linux, as in fio.
const ErrnoMismatch = 84

// mismatchError says where data is not what was written.
type mismatchError struct{ text string }

func (m *mismatchError) Error() string { return m.text }

// Unwrap gives the error its number, which reports carry.
func (m *mismatchError) Unwrap() error { return syscall.Errno(ErrnoMismatch) }

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
