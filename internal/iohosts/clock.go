package iohosts

import (
	"sync"
	"time"
)

// A host's clock counts nanoseconds on its monotonic clock from the start of its process, so that a step of its wall clock
// moves nothing. The controller asks for the time again and again: what the host answers was its time at some moment
// between question and answer, so the middle of both is wrong by at most half of the way there and back, and by what clocks
// drift apart since. The answer for which both are least counts (after the clock filter of the Network Time Protocol, D. Mills
// and others, RFC 5905, section 10).

// driftMax is how fast two clocks may drift apart: 100 µs in a second. Oscillators of computers keep within that.
const driftMax = 100e-6

const clockAgeMax = 30 * time.Second

// reading is one answer.
type reading struct {
	at     time.Time     // here, in the middle
	trip   time.Duration // there and back
	mono   int64         // the host's clock
	offset time.Duration // of the host's wall clock against ours
}

// hostClock knows how a host's clock stands against ours.
type hostClock struct {
	mu       sync.Mutex
	readings []reading // of the last clockAgeMax, in order
}

func (c *hostClock) add(sent, received time.Time, p *pong) {
	trip := received.Sub(sent)
	at := sent.Add(trip / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings = append(c.readings, reading{at: at, trip: trip, mono: p.MonoNanos, offset: time.Duration(p.WallNanos - at.UnixNano())})
	first := 0
	for at.Sub(c.readings[first].at) > clockAgeMax {
		first++
	}
	c.readings = c.readings[first:]
}

// best returns the answer that is the least wrong now.
func (c *hostClock) best(now time.Time) (reading, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.readings) == 0 {
		return reading{}, false
	}
	best := c.readings[0]
	for _, r := range c.readings[1:] {
		if r.uncertainty(now) <= best.uncertainty(now) {
			best = r
		}
	}
	return best, true
}

// onHost returns what the host's clock shows at t.
func (r reading) onHost(t time.Time) int64 { return r.mono + int64(t.Sub(r.at)) }

// uncertainty is how wrong onHost and offset can be for a moment.
func (r reading) uncertainty(t time.Time) time.Duration {
	return r.trip/2 + time.Duration(driftMax*float64(t.Sub(r.at).Abs()))
}
