package ioengine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Engines of fio that do no I/O of their own: falloc and ftruncate time calls that change what a file occupies, and cpuio
// computes. Only a job can choose them, by its ioengine, and only bragg io runs them.

// newCallsBackend returns the back end of a worker whose only lane has a job for such an engine.
func newCallsBackend(slots []slot, kind backendKind, load *fiojob.CPULoad, stop *atomic.Bool) backend {
	b := newPsyncBackend(slots, kind)
	switch kind {
	case kindFalloc:
		b.perform = performAllocation
	case kindTruncate:
		b.perform = performTruncation
	default:
		b.perform = newBurner(load, stop).burn
	}
	return b
}

// dataless tells whether a back end moves no data, so that there is nothing to make, check or read back.
func (k backendKind) dataless() bool {
	return k == kindNull || k == kindNames || k == kindFalloc || k == kindTruncate || k == kindCPU
}

// ofJob tells whether only a job can choose the back end, because it does something else than I/O.
func (k backendKind) ofJob() bool {
	return k != kindNull && k.dataless()
}

// performAllocation does one operation of falloc: a write gives a range its space and makes the file as long, a read gives
// it space without that, a trim takes the space back.
func performAllocation(s *slot) int32 {
	switch s.kind {
	case opRead, opWrite:
		return s.file.allocate(s.offset, s.size, s.kind == opRead)
	}
	return perform(s)
}

// performTruncation does one operation of ftruncate: the file ends at the offset of a write.
func performTruncation(s *slot) int32 {
	if s.kind != opWrite {
		return perform(s)
	}
	if err := s.file.handle.Truncate(s.offset); err != nil {
		return resultOf(0, err)
	}
	return wholeSize
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
	// burnPauseMax bounds how long a rest goes on when the load has ended, in nanoseconds.
	burnPauseMax = int64(20 * time.Millisecond)
)

// burn is one cycle, or what fits into the span of the slot, in nanoseconds.
func (b *burner) burn(s *slot) int32 {
	begun := time.Now()
	busy := min(b.busy, time.Duration(s.span))
	for time.Since(begun) < busy && !b.stop.Load() {
		for i := range b.sort {
			b.seed = b.seed*1664525 + 1013904223 // the constants of Numerical Recipes
			b.sort[i] = int32(b.seed)
		}
		slices.Sort(b.sort)
	}
	for end := min(busy+b.idle, time.Duration(s.span)); !b.stop.Load(); {
		left := int64(end - time.Since(begun))
		if left <= 0 {
			break
		}
		pause(min(left, burnPauseMax))
	}
	return 0
}
