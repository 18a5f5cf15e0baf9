package collect

import (
	"math"
	"time"
)

// Counters turns the counters of a storage system into rates, means and monotonic totals. Counters of storage systems restart when a
// controller reboots or fails over, and wrap at 32 or 64 bits. It is not safe for concurrent use.
type Counters struct {
	known map[string]*counter
	round uint64
}

type counter struct {
	at    time.Time
	value uint64
	total float64 // since it was first read, without resets and wraps
	round uint64

	delta   float64 // of the last two values; NaN if unknown
	seconds float64
}

// NewCounters returns an empty set.
func NewCounters() *Counters { return &Counters{known: map[string]*counter{}} }

const (
	// countersMax bounds a set.
	countersMax = 1_000_000
	// A value that decreased wrapped if it was in the last quarter of its range before and is in the first quarter now; else it restarted.
	wrap32, wrap64 = float64(1 << 32), float64(1<<63) * 2
	quarter        = 0.25
)

// Begin starts a reading. Counters that the reading before did not have are forgotten: their objects are gone.
func (c *Counters) Begin() {
	for key, one := range c.known {
		if one.round < c.round {
			delete(c.known, key)
		}
	}
	c.round++
}

// Add takes a value of a counter at a time of the source.
func (c *Counters) Add(key string, value uint64, at time.Time) {
	one := c.known[key]
	if one == nil {
		if len(c.known) < countersMax {
			c.known[key] = &counter{at: at, value: value, total: float64(value), delta: math.NaN(), round: c.round}
		}
		return
	}
	one.round = c.round
	seconds := at.Sub(one.at).Seconds()
	if seconds <= 0 {
		return // the source shows the same reading again
	}
	delta, restarted := difference(one.value, value)
	one.total += delta
	one.delta, one.seconds = delta, seconds
	if restarted {
		one.delta = math.NaN() // what was counted before the restart is unknown
	}
	one.at, one.value = at, value
}

// difference returns how much a counter increased, across a wrap; after a restart, what it counted since.
func difference(before, now uint64) (delta float64, restarted bool) {
	if now >= before {
		return float64(now - before), false
	}
	b, n := float64(before), float64(now)
	switch {
	case b < wrap32 && b > wrap32*(1-quarter) && n < wrap32*quarter:
		return wrap32 - b + n, false
	case b > wrap64*(1-quarter) && n < wrap64*quarter:
		return float64(now - before), false // unsigned subtraction wraps likewise
	}
	return n, true
}

// Total is the value of a counter without resets and wraps.
func (c *Counters) Total(key string) (float64, bool) {
	one := c.known[key]
	if one == nil || one.round != c.round {
		return 0, false
	}
	return one.total, true
}

// Rate is the increase per second between the last two readings; false if there is none.
func (c *Counters) Rate(key string) (float64, bool) {
	one := c.known[key]
	if one == nil || one.round != c.round || math.IsNaN(one.delta) || one.seconds <= 0 {
		return 0, false
	}
	return one.delta / one.seconds, true
}

// Mean is the increase of a counter per increase of its base counter: a mean latency per operation, or a share of time. It is false with
// fewer than least of the base.
func (c *Counters) Mean(key, base string, least float64) (float64, bool) {
	one, of := c.known[key], c.known[base]
	if one == nil || of == nil || one.round != c.round || of.round != c.round || math.IsNaN(one.delta) || math.IsNaN(of.delta) ||
		one.at != of.at || of.delta <= 0 || of.delta < least {
		return 0, false
	}
	return one.delta / of.delta, true
}
