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
	total float64 // without resets and wraps; of counters beyond exactMax since it was first read
	round uint64
	wide  bool // it has been beyond 32 bits
	doubt bool // its next increase may lack what a part of the object counted

	delta   float64 // of the last two values; NaN if unknown
	seconds float64
}

// NewCounters returns an empty set.
func NewCounters() *Counters { return &Counters{known: map[string]*counter{}} }

const (
	// countersMax bounds a set.
	countersMax = 1_000_000
	// absencesMax is how many readings a counter may be missing from and go on: a system that does not answer for a while, or that leaves out
	// an object, has not restarted. A total that began again would look like a restart and count everything before it once more.
	absencesMax = 10
	// A value that decreased wrapped if it was in the last quarter of its range before and is in the first quarter now; else it restarted.
	wrap32, wrap64 = float64(1 << 32), float64(1<<63) * 2
	quarter        = 0.25
	// exactMax is the largest number up to which a float64 has every whole number. Single operations would vanish in larger totals.
	exactMax = 1 << 53
)

// Begin starts a reading. Counters that the last readings did not have are forgotten: their objects are gone.
func (c *Counters) Begin() {
	for key, one := range c.known {
		if c.round-one.round >= absencesMax {
			delete(c.known, key)
		}
	}
	c.round++
}

// Add takes the values of the counters of one object at a time of the source. Total, Rate and Mean name a counter by object and counter.
func (c *Counters) Add(object string, values map[string]uint64, at time.Time) {
	// All counters of an object restart together, those too that are higher by now than they were before. One that looks like a wrap beside one that does not is a restart too: 3.9 billion that become 70
	// are one at 64 bits and may be the other at 32.
	restarted := false
	for name, value := range values {
		if one := c.known[object+keySeparator+name]; one != nil && at.After(one.at) {
			_, fell := one.difference(value)
			restarted = restarted || fell
		}
	}
	for name, value := range values {
		c.add(object+keySeparator+name, value, at, restarted)
	}
}

// Doubt says that a part of an object was away in this reading, and may have restarted: the next reading has no rates of these counters.
func (c *Counters) Doubt(object string, values map[string]uint64) {
	for name := range values {
		if one := c.known[Key(object, name)]; one != nil {
			one.doubt = true
		}
	}
}

// keySeparator is in no name of an object.
const keySeparator = "\xff"

// Key names a counter of an object.
func Key(object, name string) string { return object + keySeparator + name }

func (c *Counters) add(key string, value uint64, at time.Time, restarted bool) {
	one := c.known[key]
	if one == nil {
		if len(c.known) < countersMax {
			one = &counter{at: at, value: value, delta: math.NaN(), round: c.round, wide: float64(value) >= wrap32}
			if value <= exactMax {
				one.total = float64(value)
			}
			c.known[key] = one
		}
		return
	}
	one.round = c.round
	seconds := at.Sub(one.at).Seconds()
	if seconds <= 0 {
		return // the source shows the same reading again
	}
	delta, fell := one.difference(value)
	if restarted {
		delta, fell = float64(value), true
	}
	one.total += delta
	one.delta, one.seconds = delta, seconds
	if fell || one.doubt {
		one.delta = math.NaN() // what was counted before the restart is unknown
	}
	one.doubt = false
	one.at, one.value, one.wide = at, value, one.wide || float64(value) >= wrap32
}

// difference returns how much a counter increased, across a wrap; after a restart, what it counted since.
func (c *counter) difference(now uint64) (delta float64, restarted bool) {
	if now >= c.value {
		return float64(now - c.value), false
	}
	b, n := float64(c.value), float64(now)
	switch {
	case !c.wide && b > wrap32*(1-quarter) && n < wrap32*quarter:
		return wrap32 - b + n, false
	case b > wrap64*(1-quarter) && n < wrap64*quarter:
		return float64(now - c.value), false // unsigned subtraction wraps likewise
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
