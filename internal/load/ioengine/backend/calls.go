package backend

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Engines of fio that do no I/O of their own: falloc and ftruncate time calls that change what a file occupies, and cpuio
// computes. Only a job can choose them, by its ioengine, and only bragg io runs them.

// NewCalls returns the back end of a worker whose only lane has a job for such an engine.
func NewCalls(slots []Slot, kind Kind, load *fiojob.CPULoad, stop *atomic.Bool) Backend {
	b := NewPsync(slots, kind)
	switch kind {
	case KindFalloc:
		b.perform = performAllocation
	case KindTruncate:
		b.perform = performTruncation
	default:
		b.perform = newBurner(load, stop).burn
	}
	return b
}

// Dataless reports whether a back end moves no data, so that there is nothing to make, check or read back.
func (k Kind) Dataless() bool {
	return k == KindNull || k == KindNames || k == KindFalloc || k == KindTruncate || k == KindCPU
}

// OfJob reports whether only a job can choose the back end, because it does something else than I/O.
func (k Kind) OfJob() bool {
	return k != KindNull && k.Dataless()
}

// performAllocation does one operation of falloc: a write gives a range its space and makes the file as long, a read gives
// it space without that, a trim takes the space back.
func performAllocation(s *Slot) int32 {
	switch s.Kind {
	case OpRead, OpWrite:
		return s.File.allocate(s.Offset, s.Size, s.Kind == OpRead)
	}
	return perform(s)
}

// performTruncation does one operation of ftruncate: the file ends at the offset of a write.
func performTruncation(s *Slot) int32 {
	if s.Kind != OpWrite {
		return perform(s)
	}
	if err := s.File.Handle.Truncate(s.Offset); err != nil {
		return resultOf(0, err)
	}
	return WholeSize
}

// burner computes for a share of the time.
type burner struct {
	busy, idle time.Duration // of one cycle
	sort       []int32       // nil: nothing but the clock is looked at
	seed       uint32
	stop       *atomic.Bool // ends a cycle early
}

func newBurner(c *fiojob.CPULoad, stop *atomic.Bool) *burner {
	b := &burner{busy: c.Chunk, seed: 1, stop: stop}
	if b.busy <= 0 {
		b.busy = cpuChunkDefault
	}
	if c.Percent < 100 {
		b.idle = b.busy * time.Duration(100-c.Percent) / time.Duration(c.Percent)
	}
	if c.Sort {
		b.sort = make([]int32, burnSortLength)
	}
	return b
}

const (
	cpuChunkDefault = 50 * time.Millisecond
	burnSortLength  = 1 << 14
	// cpuPauseMaxNanos is how often an idle thread checks whether the load has ended.
	cpuPauseMaxNanos = int64(20 * time.Millisecond)
)

// burn is one cycle, or what fits into the span of the slot, in nanoseconds.
func (b *burner) burn(s *Slot) int32 {
	begun := time.Now()
	busy := min(b.busy, time.Duration(s.Span))
	for time.Since(begun) < busy && !b.stop.Load() {
		for i := range b.sort {
			b.seed = b.seed*1664525 + 1013904223 // the constants of Numerical Recipes
			b.sort[i] = int32(b.seed)
		}
		slices.Sort(b.sort)
	}
	for end := min(busy+b.idle, time.Duration(s.Span)); !b.stop.Load(); {
		left := int64(end - time.Since(begun))
		if left <= 0 {
			break
		}
		thread.Pause(min(left, cpuPauseMaxNanos))
	}
	return 0
}
