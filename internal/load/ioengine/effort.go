package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
)

// threaded is a back end with threads of its own.
type threaded interface {
	// lap returns the most that one of them used and waited since the former lap. It is called from another goroutine.
	lap() (busiest, waited int64)
}

// effort returns how hard the threads of all workers had it since it was called last, in an interval of some length.
func (t *timeline) effort(length int64) interval.Effort {
	var e interval.Effort
	for _, w := range t.workers {
		w.mu.Lock()
		busiest, waited := w.cpu.lap()
		w.mu.Unlock()
		e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
		if b, ok := w.backend.(threaded); ok {
			busiest, waited = b.lap()
			e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
		}
	}
	now := readWithheld()
	e.StolenNanos, e.ThrottledNanos = now.stolen-t.withheld.stolen, now.throttled-t.withheld.throttled
	t.withheld = now
	// A wait is counted when it ends, so that it may be longer than the interval in which it does.
	e.BusiestNanos, e.WaitedNanos = min(e.BusiestNanos, length), min(e.WaitedNanos, length)
	return e
}
