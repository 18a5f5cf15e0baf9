package iojob

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/load/ioengine"
)

// StartDelay is the time from the preparation of the last clone to the common start of all.
const StartDelay = 2 * time.Millisecond

// hostShift keeps the numbers of clones on several hosts apart.
const hostShift = 20

// Ready reports that the jobs between two stonewalls are prepared: files are laid out and open, memory is allocated.
type Ready struct {
	Phase  int     // from 0
	Faults []error // of clones that could not be prepared
}

// start returns the time at which prepared clones begin, on the run's axis, and false if they must not begin.
func (r *runner) start(ctx context.Context, ready Ready, prepared []ioengine.Run) (time.Duration, bool) {
	if r.options.Start == nil {
		return r.axis.now() + StartDelay, len(ready.Faults) < len(prepared)
	}
	at, err := r.options.Start(ctx, ready)
	if err != nil {
		for _, run := range prepared {
			if run.Prepared() {
				_ = run.Close() // nothing was written
			}
		}
		return 0, false
	}
	if ready.Phase == 0 {
		// Hosts that start together also begin their periods together.
		r.axis.set(at.Add(-StartDelay))
	}
	for _, run := range prepared {
		if run.Prepared() {
			run.ZeroAt(r.axis.zero().UnixNano())
		}
	}
	return at.Sub(r.axis.zero()), len(ready.Faults) < len(prepared)
}

// axis is the time axis of a run. Its zero moves once, when several hosts have agreed on their start.
type axis struct {
	mu   sync.Mutex
	from time.Time
}

func (a *axis) set(zero time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from = zero
}

func (a *axis) zero() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.from
}

func (a *axis) now() time.Duration { return time.Since(a.zero()) }
