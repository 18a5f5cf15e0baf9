package measuring

import (
	"runtime"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// effort returns how hard the threads of all workers had it in an interval of some length. What came together since it was called
// last may be more than that: a collector that was itself kept from the CPU closes several intervals at once, and late is how long
// this one has been over. Nothing tells when in that time it happened, so that each of them gets its share.
func (t *collector) effort(length, late int64) interval.Effort {
	var e interval.Effort
	for _, w := range t.sources {
		busiest, waited := w.Lap()
		e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
	}
	now := thread.WithheldNow()
	stolen, throttled := now.From(t.withheld, e.BusiestNanos, runtime.NumCPU())
	e.Join(interval.Effort{StolenNanos: stolen, ThrottledNanos: throttled})
	t.withheld = now
	counts := [...]struct{ of, rest *int64 }{{&e.BusiestNanos, &t.rest.BusiestNanos}, {&e.WaitedNanos, &t.rest.WaitedNanos},
		{&e.StolenNanos, &t.rest.StolenNanos}, {&e.ThrottledNanos, &t.rest.ThrottledNanos}}
	for _, v := range counts {
		all := *v.of + *v.rest
		*v.of = min(shareOf(all, length, late), length)
		// A wait is counted when it ends, so that it may be longer than the time since: what is left of it lies before.
		*v.rest = max(0, min(all-*v.of, late))
	}
	return e
}

// shareOf returns the part of nanos, which came together in a time of length and late, that falls into length.
func shareOf(nanos, length, late int64) int64 {
	if late <= 0 || length <= 0 {
		return nanos
	}
	return int64(float64(nanos) * float64(length) / float64(length+late))
}
