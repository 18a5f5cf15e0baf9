package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// dueBy returns how many operations the schedules have placed before t. t never goes back. A job that is bound by its
// size has no more of them than it has left to do.
func (l *lane) dueBy(t int64) uint64 {
	t = min(t, l.end)
	if l.replay != nil {
		if l.replay.noStall {
			return 0
		}
		return l.replay.dueBy(t-l.Start, l.issued)
	}
	limit := l.remaining()
	var sum uint64
	for d := range l.due {
		if !l.paced[d] {
			continue
		}
		if l.due[d].Count() < l.pacers[d].Count() {
			l.due[d] = l.pacers[d]
		}
		ahead := l.pacers[d].Count()
		for l.Closed != queue.ClosedDone && l.due[d].Next() < t && l.due[d].Count()-ahead < limit {
			l.due[d].Advance(l.weight(l.Job.Sizes[d].Mean()))
		}
		sum += l.due[d].Count()
	}
	return sum
}

// remaining returns how many operations are left, estimated where sizes are mixed.
func (l *lane) remaining() uint64 {
	var bytes int64
	for i := range l.Streams {
		if l.Streams[i].Left == pattern.Unbounded {
			return uint64(max(0, l.Left))
		}
		bytes += max(0, l.Streams[i].Left)
	}
	mean := l.Job.SizeMean()
	return min(uint64(max(0, l.Left)), uint64(math.Ceil(float64(bytes)/mean)))
}

// weight is what an operation counts in the schedule of its rate.
func (l *lane) weight(size float64) float64 {
	if l.Spec.InBytes {
		return size
	}
	return 1
}

// fillBurn is fill for a lane that only computes: one cycle after the other until its time is over.
func (l *lane) fillBurn(w *worker, now int64) int64 {
	switch {
	case now < l.Start:
		return l.Start
	case now >= l.end:
		l.close(queue.ClosedTime)
	case len(l.Free) > 0:
		sl := l.Take()
		sl.Kind, sl.Direction, sl.Intended, sl.Size, sl.Span = backend.OpBurn, 0, backend.Never, 0, l.end-now
	}
	return backend.Never
}
