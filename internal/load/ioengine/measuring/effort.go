package measuring

import (
	"runtime"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// effort returns how hard the threads of all workers had it since it was called last, in an interval of some length.
func (t *collector) effort(length int64) interval.Effort {
	var e interval.Effort
	for _, w := range t.sources {
		busiest, waited := w.Lap()
		e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
	}
	now := thread.WithheldNow()
	e.StolenNanos, e.ThrottledNanos = now.From(t.withheld, e.BusiestNanos, runtime.NumCPU())
	t.withheld = now
	// A wait is counted when it ends, so that it may be longer than the interval in which it does.
	e.BusiestNanos, e.WaitedNanos = min(e.BusiestNanos, length), min(e.WaitedNanos, length)
	e.StolenNanos, e.ThrottledNanos = min(e.StolenNanos, length), min(e.ThrottledNanos, length)
	return e
}
