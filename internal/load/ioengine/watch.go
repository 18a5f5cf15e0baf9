package ioengine

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/search"
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

	search *search.Search // nil: the depth is that of the job
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
		w.search = search.New(c, job.Depth)
	}
	return w
}

func (w *watch) begin(l *lane) {
	w.lookAt = max(l.Start+rateGrace, l.measureFrom)
	if w.search != nil {
		w.search.Window = l.measureFrom
		l.reserve = l.Job.Depth - w.search.Depth
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
		w.search.Completed(s.Submitted, latency)
	}
}

// look judges what is due to be judged at now. It returns what ends the job.
func (w *watch) look(l *lane, now int64) error {
	if w.cycle > 0 && now >= w.lookAt && l.Closed == queue.StillOpen {
		w.lookAtRates(l, now)
	}
	if w.search != nil && l.Closed == queue.StillOpen {
		switch found := w.search.Look(now); found {
		case search.SearchOver:
			l.closeSearch(now)
		case search.JustFound, search.NextDepth:
			if found == search.JustFound {
				l.measureFrom = max(l.measureFrom, now)
			}
			l.reserve = l.Job.Depth - w.search.Depth
		}
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

// closeSearch ends a lane whose search is over.
func (l *lane) closeSearch(now int64) {
	l.end = min(l.end, now)
	l.close(queue.ClosedTime)
}

// Depth returns the state of the search of the first job's first clone, and false where none is under way. It may be
// called while the workload runs.
func (r Run) Depth() (search.Depth, bool) {
	if len(r.phases) == 0 || len(r.phases[0]) == 0 {
		return search.Depth{}, false
	}
	w := r.phases[0][0]
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lanes) == 0 || w.lanes[0].watch == nil || w.lanes[0].watch.search == nil {
		return search.Depth{}, false
	}
	return w.lanes[0].watch.search.State(), true
}

// ForgetSearch excludes the operations of a search for a queue depth from all counts until the depth is found, as fio
// does. It must be called before Run of a workload with one clone.
func (r Run) ForgetSearch() { r.shared.forgetSearch = true }

// forget drops what was recorded in the current period and all counts of depth, when a search has just ended.
func (w *worker) forget() {
	var nowhere interval.Interval
	w.Record.AddTo(&nowhere, make([]string, len(w.shared.devices)))
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
		found := l.watch.search != nil && l.watch.search.FoundAt > 0
		if err := l.watch.look(l, now); err != nil && first == nil {
			first = err
		}
		if !found && l.watch.search != nil && l.watch.search.FoundAt > 0 && w.shared.forgetSearch {
			w.forget()
		}
	}
	return first
}
