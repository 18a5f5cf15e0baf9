// Package clock estimates the offset of another machine's clock to the local one, the error of that estimate, and how far
// ahead a common start has to be announced. It measures nothing itself: the caller that queried the other machine passes
// the times of request and answer.
//
//	question and answer ──Filter.Add──▶ Reading ──▶ Reading.There(t): what the other clock shows at t
//
// The other clock counts nanoseconds on a monotonic clock from an arbitrary start, so that steps of a wall clock have no
// effect. The answer was its time at some point between request and answer, so that the midpoint is wrong by at most half
// the round trip, plus the drift since. The answer with the smallest total error is used (after the clock filter of the
// Network Time Protocol, D. Mills and others, RFC 5905, section 10).
//
// Dates does the same for the wall clock of an HTTP server that says no more than the Date of its answers.
package clock

import (
	"sync"
	"time"
)

// driftMax is how fast two clocks may drift apart: 100 µs per second. Computer oscillators are within that.
const driftMax = 100e-6

const ageMax = 30 * time.Second

// Reading is one answer.
type Reading struct {
	At        time.Time     // local time, in the middle of the round trip
	Trip      time.Duration // round trip
	MonoNanos int64         // of the other clock
	Offset    time.Duration // of the other wall clock to the local one
}

// There returns the time of the other clock at t.
func (r Reading) There(t time.Time) int64 { return r.MonoNanos + int64(t.Sub(r.At)) }

// Uncertainty is the maximum error of There and Offset at time t.
func (r Reading) Uncertainty(t time.Time) time.Duration {
	return r.Trip/2 + time.Duration(driftMax*float64(t.Sub(r.At).Abs()))
}

// Filter keeps the answers of the last half minute. It may be used from several goroutines.
type Filter struct {
	mu       sync.Mutex
	readings []Reading // in order of time
}

// Add adds an answer: at some time between sent and received the other clocks showed monoNanos and, in nanoseconds since
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

// Best returns the answer with the smallest error now; false if there is none.
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

// Forget drops all answers: their clock no longer exists.
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
