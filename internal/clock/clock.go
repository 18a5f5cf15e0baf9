// Package clock estimates the offset of another machine's clock to ours, the error of that estimate, and how far ahead a
// common start has to be agreed. It measures nothing itself: the caller that queried the other machine passes the times of
// question and answer.
//
//	question and answer ──Filter.Add──▶ Reading ──▶ Reading.There(t): what the other clock shows at t
//
// The other clock counts nanoseconds on a monotonic clock from some start of its own, so that a step of a wall clock moves
// nothing. The answer was its time at some moment between question and answer, so the midpoint is wrong by at most half the
// round trip, plus the drift since. The answer with the smallest total error counts (after the clock filter of the Network
// Time Protocol, D. Mills and others, RFC 5905, section 10).
package clock

import (
	"sync"
	"time"
)

// driftMax is how fast two clocks may drift apart: 100 µs in a second. Oscillators of computers keep within that.
const driftMax = 100e-6

const ageMax = 30 * time.Second

// Reading is one answer.
type Reading struct {
	At        time.Time     // here, in the middle of the trip
	Trip      time.Duration // there and back
	MonoNanos int64         // what the other clock showed
	Offset    time.Duration // of the other wall clock against ours
}

// There returns what the other clock shows at t.
func (r Reading) There(t time.Time) int64 { return r.MonoNanos + int64(t.Sub(r.At)) }

// Uncertainty is how wrong There and Offset can be for a moment.
func (r Reading) Uncertainty(t time.Time) time.Duration {
	return r.Trip/2 + time.Duration(driftMax*float64(t.Sub(r.At).Abs()))
}

// Filter keeps the answers of the last half minute. It may be used from several goroutines.
type Filter struct {
	mu       sync.Mutex
	readings []Reading // in order
}

// Add takes an answer: at some moment between sent and received the other clocks showed monoNanos and, in nanoseconds since
// 1970, wallNanos.
func (f *Filter) Add(sent, received time.Time, monoNanos, wallNanos int64) Reading {
	trip := received.Sub(sent)
	at := sent.Add(trip / 2)
	r := Reading{At: at, Trip: trip, MonoNanos: monoNanos, Offset: time.Duration(wallNanos - at.UnixNano())}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readings = append(f.readings, r)
	first := 0
	for at.Sub(f.readings[first].At) > ageMax {
		first++
	}
	f.readings = f.readings[first:]
	return r
}

// Best returns the answer that is the least wrong now; false where there is none.
func (f *Filter) Best(now time.Time) (Reading, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.readings) == 0 {
		return Reading{}, false
	}
	best := f.readings[0]
	for _, r := range f.readings[1:] {
		if r.Uncertainty(now) <= best.Uncertainty(now) {
			best = r
		}
	}
	return best, true
}

// Forget drops all answers: they were of a clock that is gone.
func (f *Filter) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readings = nil
}

// Bounds of Ahead.
const (
	aheadMin     = 20 * time.Millisecond
	aheadTrips   = 4
	aheadPerPeer = time.Millisecond
)

// Ahead is how long before a common start peers must be notified, so that the last one receives it in time: several times
// the slowest round trip, plus the time to notify all.
func Ahead(slowest time.Duration, peers int) time.Duration {
	return max(aheadMin, aheadTrips*slowest) + time.Duration(peers)*aheadPerPeer
}
