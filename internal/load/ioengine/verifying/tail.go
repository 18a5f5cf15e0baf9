package verifying

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// tail is the last writes of a lane, as many as its queue is deep, for the verification in another job.
type tail struct {
	recent []Written // write n of the lane is at n modulo their number
	count  uint64    // of all writes
	failed uint64
}

func (t *tail) add(w Written) {
	t.recent[t.count%uint64(len(t.recent))] = w
	t.count++
}

// lose notes a write that failed; numbers restart with each loop, so that the newest one is meant.
func (t *tail) lose(s *backend.Slot) {
	t.failed++
	for back := uint64(1); back <= min(t.count, uint64(len(t.recent))); back++ {
		if w := &t.recent[(t.count-back)%uint64(len(t.recent))]; w.Stream == s.Stream && w.Number == s.Number {
			w.dead = true
			return
		}
	}
}

// LastWrites returns the number of writes of the lane, and the offsets of the last writes that are known to be
// complete; false if an earlier write failed.
func (t *tail) LastWrites() (limit fiojob.VerifyLimit, ok bool) {
	limit.Writes, limit.Depth = t.count, uint64(len(t.recent))
	failed := t.failed
	for back := uint64(1); back <= min(t.count, limit.Depth); back++ {
		if w := &t.recent[(t.count-back)%limit.Depth]; w.dead {
			failed--
		} else {
			limit.Completed = append(limit.Completed, fiojob.VerifyPlace{File: int64(w.Stream), Offset: w.Offset})
		}
	}
	return limit, failed == 0
}
