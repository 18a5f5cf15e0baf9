package load

import "math"

// Pacer is the schedule of an open loop: it determines when each operation is due, independent of the operations before.
// The schedule is never delayed by a slow device; only then are response times that are measured from it correct
// (Schroeder, Wierman, Harchol-Balter: Open Versus Closed, NSDI 2006). It is a plain value: a copy continues
// independently.
type Pacer struct {
	gapNanos float64 // mean distance of two operations of weight 1
	rest     float64 // the fraction of next below a nanosecond
	next     int64
	key      uint64
	count    uint64
	drawn    uint64 // gaps drawn: one more than count, because the first operation has a gap before it
	poisson  bool
}

// NewPacer returns a schedule of perSecond units per second, whose first operation is due at start (linear) or one gap
// after it (poisson). perSecond must be above 0.
func NewPacer(start int64, perSecond float64, poisson bool, key uint64) Pacer {
	p := Pacer{gapNanos: 1e9 / perSecond, next: start, key: key, poisson: poisson}
	if poisson {
		p.Advance(1)
		p.count = 0
	}
	return p
}

// Next returns the time at which the next operation is due, in nanoseconds on the axis of start.
func (p *Pacer) Next() int64 { return p.next }

// Count returns how many operations were taken from the schedule.
func (p *Pacer) Count() uint64 { return p.count }

// Advance takes the next operation from the schedule. Its weight is 1 for a rate in operations, and its size in bytes for a
// rate in bytes.
func (p *Pacer) Advance(weight float64) {
	gap := p.gapNanos * weight
	if p.poisson {
		// 1 − u is in (0, 1], so the logarithm is finite.
		gap *= -math.Log(1 - DrawUnit(p.key, p.drawn))
		p.drawn++
	}
	p.count++
	gap += p.rest
	whole := math.Floor(gap)
	p.rest = gap - whole
	p.next += int64(whole)
}
