package measuring

import (
	"runtime"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// effort returns how hard the threads of all workers had it in an interval of some length. What came together since it was called
// last may be more than that: a collector that was itself kept from the CPU closes several intervals at once, and late is how long
// this one has been over. The rest is then that of the next ones.
func (t *collector) effort(length, late int64) interval.Effort {
	e := t.rest
	for _, w := range t.sources {
		busiest, waited := w.Lap()
		e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
	}
	now := thread.WithheldNow()
	stolen, throttled := now.From(t.withheld, e.BusiestNanos, runtime.NumCPU())
	e.Join(interval.Effort{StolenNanos: stolen, ThrottledNanos: throttled})
	t.withheld = now
	// A wait is counted when it ends, so that it may be longer than the interval in which it does: what is left of it lies before.
	all := [...]struct{ of, rest *int64 }{{&e.BusiestNanos, &t.rest.BusiestNanos}, {&e.WaitedNanos, &t.rest.WaitedNanos},
		{&e.StolenNanos, &t.rest.StolenNanos}, {&e.ThrottledNanos, &t.rest.ThrottledNanos}}
	for _, v := range all {
		*v.rest = max(0, min(*v.of-length, late))
		*v.of = min(*v.of, length)
	}
	return e
}
