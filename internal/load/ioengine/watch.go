package ioengine

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// watch looks at what a lane completes where its job bounds latency or rates, or searches a queue depth. Lanes of other
// jobs have none, which costs them one comparison for each operation.
type watch struct {
	job        *program.Job
	latencyMax int64 // 0: any
	failure    error

	rates  [interval.DirectionCount]rateFloor
	cycle  int64 // between two looks at rates; 0: no rate is bounded
	lookAt int64

	search *depthSearch // nil: the depth is that of the job
}

// rateFloor is the least that one direction must do.
type rateFloor struct {
	bytes, operations         float64 // a second; 0: any
	bytesDone, operationsDone int64   // since the last look
}

// rateGrace is how long after its start a job need not keep its least rate; fio's.
const rateGrace = int64(2 * time.Second)

// newWatch returns nil for a job that bounds nothing.
func newWatch(job *program.Job) *watch {
	if !job.Watched() {
		return nil
	}
	c := &job.Fio.Control
	w := &watch{job: job, latencyMax: int64(c.LatencyMax)}
	for d, active := range job.Active() {
		if !active {
			continue
		}
		floor := &w.rates[d]
		floor.bytes, floor.operations = float64(c.RateMin[d]), float64(c.RateIOPSMin[d])
		if floor.bytes > 0 || floor.operations > 0 {
			w.cycle = int64(cmp.Or(c.RateCycle, time.Second))
		}
	}
	if c.LatencyTarget > 0 {
		w.search = newDepthSearch(c, job.Depth)
	}
	return w
}

func (w *watch) begin(l *lane) {
	w.lookAt = max(l.Start+rateGrace, l.measureFrom)
	if w.search != nil {
		w.search.window = l.measureFrom
		l.reserve = l.Job.Depth - w.search.depth
	}
}

// completed looks at one operation that succeeded.
func (w *watch) completed(s *backend.Slot, now int64) {
	latency := now - s.Intended
	if w.latencyMax > 0 && latency > w.latencyMax && w.failure == nil {
		w.failure = &diag.Error{
			Code: "max-latency", Exit: diag.ExitUndecided, Err: syscall.ETIMEDOUT,
			Message: fmt.Sprintf("a %s at offset %d took %s, more than max_latency=%s",
				interval.Direction(s.Direction), s.Offset, time.Duration(latency), w.job.Fio.Control.LatencyMax),
		}
	}
	if w.cycle > 0 {
		floor := &w.rates[s.Direction]
		floor.bytesDone += s.Size
		floor.operationsDone++
	}
	if w.search != nil {
		w.search.completed(s, latency)
	}
}

// look judges what is due to be judged at now. It returns what ends the job.
func (w *watch) look(l *lane, now int64) error {
	if w.cycle > 0 && now >= w.lookAt && l.Closed == queue.StillOpen {
		w.lookAtRates(l, now)
	}
	if w.search != nil && l.Closed == queue.StillOpen {
		w.search.look(l, now)
	}
	err := w.failure
	w.failure = nil
	return err
}

// lookAtRates compares one cycle with the least rates. The first look only ends the grace.
func (w *watch) lookAtRates(l *lane, now int64) {
	seconds := float64(now-w.lookAt+w.cycle) / 1e9
	first := w.lookAt == max(l.Start+rateGrace, l.measureFrom)
	for d := range w.rates {
		floor := &w.rates[d]
		bytes, operations := float64(floor.bytesDone)/seconds, float64(floor.operationsDone)/seconds
		floor.bytesDone, floor.operationsDone = 0, 0
		if first || bytes >= floor.bytes && operations >= floor.operations || w.failure != nil {
			continue
		}
		what := fmt.Sprintf("%.0f bytes/s, less than rate_min=%.0f", bytes, floor.bytes)
		if operations < floor.operations {
			what = fmt.Sprintf("%.0f operations/s, less than rate_iops_min=%.0f", operations, floor.operations)
		}
		w.failure = &diag.Error{
			Code: "rate-min", Exit: diag.ExitUndecided, Err: syscall.EIO,
			Message: fmt.Sprintf("%ss came to %s in %s", interval.Direction(d), what,
				time.Duration(seconds*1e9).Round(time.Millisecond)),
		}
	}
	w.lookAt = now + w.cycle
}

// depthSearch finds the deepest queue at which enough operations are faster than a target. It doubles the depth from 1 on
// until a window fails, and halves the distance between the deepest that passed and the shallowest that failed.
type depthSearch struct {
	target     int64
	percentile float64
	length     int64 // of a window
	goOn       bool  // follow the target to the end of the job

	depth, depthMax int
	passed, failed  int   // deepest and shallowest so far; 0: none
	window          int64 // its start
	count, slow     int64 // of operations that were submitted in it

	found    bool
	foundAt  int64
	met      bool // the target was met at the depth
	calm     int  // windows in a row that passed, after it was found
	finished bool
}

// latencyWindowDefault is used where a file gives a target and no window.
const latencyWindowDefault = 100 * time.Millisecond

func newDepthSearch(c *fiojob.Control, depthMax int) *depthSearch {
	return &depthSearch{
		target: int64(c.LatencyTarget), percentile: cmp.Or(c.LatencyPercentile, 100), goOn: c.LatencyRun,
		length: int64(cmp.Or(c.LatencyWindow, latencyWindowDefault)), depth: 1, depthMax: depthMax,
	}
}

func (d *depthSearch) completed(s *backend.Slot, latency int64) {
	if s.Submitted < d.window {
		return // of the depth before
	}
	d.count++
	if latency > d.target {
		d.slow++
	}
}

// passes tells whether the window meets the target; a window without operations says nothing.
func (d *depthSearch) passes() bool {
	return 100*float64(d.count-d.slow) >= d.percentile*float64(d.count)
}

// look ends a window that is over and goes on to the next depth.
func (d *depthSearch) look(l *lane, now int64) {
	if now < d.window+d.length || d.count == 0 {
		return
	}
	passes := d.passes()
	d.window, d.count, d.slow = now, 0, 0
	switch {
	case d.found && !d.goOn:
		d.met, d.finished = passes, true
		l.closeSearch(now)
		return
	case d.found:
		d.follow(passes)
	default:
		d.step(passes)
		if d.found && !d.goOn {
			d.foundAt = now
			l.measureFrom = max(l.measureFrom, now)
		}
	}
	l.reserve = l.Job.Depth - d.depth
}

// step chooses the next depth of the search.
func (d *depthSearch) step(passes bool) {
	if passes {
		d.passed = d.depth
	} else {
		d.failed = d.depth
	}
	d.met = passes
	switch {
	case d.failed == 1:
		d.failed, d.depth = 0, 1 // nothing is shallower: it may pass later
	case d.passed == d.depthMax || d.failed > 0 && d.failed-d.passed <= 1:
		d.found, d.depth, d.met = true, d.passed, true
	case d.failed > 0:
		d.depth = (d.passed + d.failed) / 2
	default:
		d.depth = min(2*d.passed, d.depthMax)
	}
}

// calmWindows pass in a row before a deeper queue is tried again.
const calmWindows = 10

// follow keeps to the target after the search: one shallower when it is missed, one deeper when it has long been met.
func (d *depthSearch) follow(passes bool) {
	d.met = passes
	if d.calm++; !passes {
		d.calm, d.depth = 0, max(1, d.depth-1)
	} else if d.calm >= calmWindows && d.depth < d.depthMax {
		d.calm = 0
		d.depth++
	}
}

// closeSearch ends a lane whose search is over.
func (l *lane) closeSearch(now int64) {
	l.end = min(l.end, now)
	l.close(queue.ClosedTime)
}

// Depth is what a search for a queue depth has come to.
type Depth struct {
	Depth int
	// Found: a deeper queue misses the target, or the job has none deeper. FoundNanos is from when operations count, on the
	// workload's axis; 0 where all do.
	Found      bool
	FoundNanos int64
	Met        bool // the target was met at that depth, in the last window
}

// Depth returns the state of the search of the first job's first clone, and false where none is under way. It may be
// called while the workload runs.
func (r Run) Depth() (Depth, bool) {
	if len(r.phases) == 0 || len(r.phases[0]) == 0 {
		return Depth{}, false
	}
	w := r.phases[0][0]
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lanes) == 0 || w.lanes[0].watch == nil || w.lanes[0].watch.search == nil {
		return Depth{}, false
	}
	d := w.lanes[0].watch.search
	return Depth{Depth: d.depth, Found: d.found, FoundNanos: d.foundAt, Met: d.met}, true
}

// ForgetSearch makes what a search for a queue depth does before it has found one count nowhere, as fio does it. It must be
// called before Run, of a workload of one clone.
func (r Run) ForgetSearch() { r.shared.forgetSearch = true }

// forget drops what was recorded in the current period and all counts of depth, when a search has just ended.
func (w *worker) forget() {
	var nowhere interval.Interval
	w.record.addTo(&nowhere, make([]string, len(w.shared.devices)))
	a := &w.account
	a.Depth, a.Submitted, a.Completed = [7]uint64{}, [7]uint64{}, [7]uint64{}
	a.Syncs.Reset()
}

// look lets all watches judge.
func (w *worker) look(now int64) error {
	var first error
	for i := range w.lanes {
		l := &w.lanes[i]
		if l.watch == nil || l.verify.Busy() || l.ramping() {
			continue
		}
		found := l.watch.search != nil && l.watch.search.foundAt > 0
		if err := l.watch.look(l, now); err != nil && first == nil {
			first = err
		}
		if !found && l.watch.search != nil && l.watch.search.foundAt > 0 && w.shared.forgetSearch {
			w.forget()
		}
	}
	return first
}
