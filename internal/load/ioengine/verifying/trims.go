package verifying

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// Trims of what a lane wrote and verifies. Writes collect in a backlog; when it is full, a batch of the oldest is looked at
// in order, and each that nothing was written over since is trimmed with a chance of some percent. That depends on the
// operations before it alone, so that making them again for verification makes the trims again too. What was trimmed is not
// checked, or has to be zeroes.

// trimmer chooses what is trimmed, while a lane runs and when its operations are made again.
type trimmer struct {
	spec    *program.Trimming
	queue   []Written
	look    int // entries of queue that are looked at now, up to this one
	at      int // the next of them
	issued  uint64
	byPlace []int // for settle
}

func newTrimmer(t *program.Trimming) *trimmer {
	if t == nil {
		return nil
	}
	return &trimmer{spec: t, queue: make([]Written, 0, t.Backlog), byPlace: make([]int, 0, t.Backlog)}
}

// wrote notes a write. It must not be called while there is a trim to issue.
func (t *trimmer) wrote(w Written) {
	t.queue = append(t.queue, w)
	if len(t.queue) >= t.spec.Backlog {
		t.byPlace = settle(t.queue, t.byPlace)
		t.look, t.at = t.spec.Batch, 0
	}
}

// next returns the next trim, and false where writes come first.
func (t *trimmer) next(streams []pattern.Stream) (Written, bool) {
	if t.look == 0 {
		return Written{}, false
	}
	for t.at < t.look {
		w := t.queue[t.at]
		t.at++
		if w.dead || load.DrawBelow(load.Key(streams[w.Stream].ContentKey, pattern.KeyTrimmed), w.Number, 100) >= t.spec.Percent {
			continue
		}
		t.issued++
		return w, true
	}
	t.queue = t.queue[:copy(t.queue, t.queue[t.look:])]
	t.look, t.at = 0, 0
	return Written{}, false
}

// NextTrim returns the trim that is to be issued before anything else.
func (v *Verifier) NextTrim(l *queue.Queue) (Written, bool) {
	if v == nil || v.trims == nil || v.spec.Only {
		return Written{}, false
	}
	w, some := v.trims.next(l.Streams)
	if !some {
		return Written{}, false
	}
	for i := range v.queue { // the backlog of verify_backlog
		if q := &v.queue[i]; q.Stream == w.Stream && q.Number == w.Number {
			q.dead, q.zero = !v.trims.spec.Zeroes, v.trims.spec.Zeroes
		}
	}
	return w, true
}

// TrimsFirst reports whether trims come before other operations.
func (v *Verifier) TrimsFirst() bool { return v != nil && v.trims != nil && v.trims.look > 0 }

// settle marks entries as dead over which a later one was written. scratch is kept for the next time.
func settle(queue []Written, scratch []int) []int {
	byPlace, largest := scratch[:0], int64(0)
	for i := range queue {
		byPlace = append(byPlace, i)
		largest = max(largest, queue[i].Size)
	}
	slices.SortFunc(byPlace, func(a, b int) int {
		return cmp.Or(cmp.Compare(queue[a].Stream, queue[b].Stream), cmp.Compare(queue[a].Offset, queue[b].Offset))
	})
	for at, i := range byPlace {
		a := &queue[i]
		for _, k := range byPlace[at+1:] {
			b := &queue[k]
			if b.Stream != a.Stream || b.Offset >= a.Offset+largest {
				break
			}
			if b.Offset >= a.Offset+a.Size {
				continue
			}
			if i < k {
				a.dead = true
			} else {
				b.dead = true
			}
		}
	}
	return byPlace
}

// trimmedBit marks in a table of last writes that the write was trimmed.
const trimmedBit = 1 << 63

// holding says what a part of an operation holds as far as it is known.
type holding uint8

const (
	holdsOther holding = iota // a later write, or unknown
	holdsWrite
	holdsZeroes
)

// zeroFault compares what was trimmed with zeroes: nil when it is.
func zeroFault(part []byte, at verify.Place) *verify.Mismatch {
	for i, b := range part {
		if b != 0 {
			return &verify.Mismatch{
				Offset: at.Block + at.Position, Length: int64(len(part)), Place: at,
				Fault: fmt.Sprintf("it was trimmed, and byte %d is %02x and not zero", at.Block+at.Position+int64(i), b),
			}
		}
	}
	return nil
}

// Untrim reverts a trim that was never issued.
func (v *Verifier) Untrim() { v.trims.issued-- }
