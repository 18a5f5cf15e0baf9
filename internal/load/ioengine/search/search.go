// Package search finds the deepest queue at which a latency target is met.
//
//	latencies of a window ──Completed──▶ Look, when the window is over ──▶ another depth, found, over
//
// The package reads no clock and changes no queue: the caller passes the time and applies the depth.
package search

import (
	"cmp"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Search finds the deepest queue at which enough operations are faster than a target. It doubles the depth from 1 on
// until a window fails, and halves the distance between the deepest that passed and the shallowest that failed.
type Search struct {
	target     int64
	percentile float64
	length     int64 // of a window
	goOn       bool  // follow the target to the end of the job

	Depth, depthMax int
	passed, failed  int   // deepest and shallowest so far; 0: none
	Window          int64 // its start
	count, slow     int64 // of operations that were submitted in it

	found    bool
	FoundAt  int64
	met      bool // the target was met at the depth
	calm     int  // windows in a row that passed, after it was found
	finished bool
}

// latencyWindowDefault is used where a file gives a target and no window.
const latencyWindowDefault = 100 * time.Millisecond

func New(c *fiojob.Control, depthMax int) *Search {
	return &Search{
		target: int64(c.LatencyTarget), percentile: cmp.Or(c.LatencyPercentile, 100), goOn: c.LatencyRun,
		length: int64(cmp.Or(c.LatencyWindow, latencyWindowDefault)), Depth: 1, depthMax: depthMax,
	}
}

func (d *Search) Completed(submitted, latency int64) {
	if submitted < d.Window {
		return // of the depth before
	}
	d.count++
	if latency > d.target {
		d.slow++
	}
}

// passes reports whether the window meets the target; a window without operations says nothing.
func (d *Search) passes() bool {
	return 100*float64(d.count-d.slow) >= d.percentile*float64(d.count)
}

// Change is the outcome of a Look.
type Change uint8

const (
	noChange Change = iota
	NextDepth
	JustFound  // operations count from now on
	SearchOver // the load ends
)

// Look closes a finished window and selects the next depth.
func (d *Search) Look(now int64) Change {
	if now < d.Window+d.length || d.count == 0 {
		return noChange
	}
	passes := d.passes()
	d.Window, d.count, d.slow = now, 0, 0
	switch {
	case d.found && !d.goOn:
		d.met, d.finished = passes, true
		return SearchOver
	case d.found:
		d.follow(passes)
	default:
		d.step(passes)
		if d.found && !d.goOn {
			d.FoundAt = now
			return JustFound
		}
	}
	return NextDepth
}

// step chooses the next depth of the search.
func (d *Search) step(passes bool) {
	if passes {
		d.passed = d.Depth
	} else {
		d.failed = d.Depth
	}
	d.met = passes
	switch {
	case d.failed == 1:
		d.failed, d.Depth = 0, 1 // nothing is shallower: it may pass later
	case d.passed == d.depthMax || d.failed > 0 && d.failed-d.passed <= 1:
		d.found, d.Depth, d.met = true, d.passed, true
	case d.failed > 0:
		d.Depth = (d.passed + d.failed) / 2
	default:
		d.Depth = min(2*d.passed, d.depthMax)
	}
}

// calmWindows pass in a row before a deeper queue is tried again.
const calmWindows = 10

// follow keeps to the target after the search: one shallower when it is missed, one deeper when it has long been met.
func (d *Search) follow(passes bool) {
	d.met = passes
	if d.calm++; !passes {
		d.calm, d.Depth = 0, max(1, d.Depth-1)
	} else if d.calm >= calmWindows && d.Depth < d.depthMax {
		d.calm = 0
		d.Depth++
	}
}

// Depth is the state of a search for a queue depth.
type Depth struct {
	Depth int
	// Found: a deeper queue misses the target, or the job has none deeper. FoundNanos is from when operations count, on the
	// workload's axis; 0 where all do.
	Found      bool
	FoundNanos int64
	Met        bool // the target was met at that depth, in the last window
}

// State returns the current state.
func (d *Search) State() Depth {
	return Depth{Depth: d.Depth, Found: d.found, FoundNanos: d.FoundAt, Met: d.met}
}
