package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/shares"
)

// A ramp is what a job does before its operations count. ramp_time ends it at a moment that is known before the start.
// ramp_size ends it when the job has moved so many bytes, or with group_reporting all jobs of its reporting group together;
// the runtime begins then. With both it ends at the later moment.

// ShareRamps ends the ramps of this workload's jobs together with those of other workloads that share ramps, within one
// reporting group. It must be called before Run.
func (r Run) ShareRamps(ramps *shares.Ramps) {
	for _, w := range r.workers() {
		for i := range w.lanes {
			w.lanes[i].ramp = ramps.Of(w.lanes[i].Job)
		}
	}
}

// ramping reports whether no size has ended the ramp yet.
func (m *moments) ramping() bool { return m.measureFrom == backend.Never }

// beginMeasuring fixes the moment from which operations count, and what follows from it.
func (l *lane) beginMeasuring(from int64) {
	l.measureFrom = from
	if l.Job.Runtime > 0 {
		l.end = from + int64(l.Job.Runtime)
	}
	l.rampDue = l.dueBy(from)
	if l.watch != nil {
		l.watch.begin(l)
	}
	if l.observer != nil {
		l.observer.Begin(from)
	}
}

// beginRamp begins a ramp whose end is not known.
func (l *lane) beginRamp() {
	l.measureFrom, l.rampDue = backend.Never, math.MaxUint64
	if l.watch != nil {
		l.watch.begin(l)
	}
	if l.observer != nil {
		l.observer.Begin(l.Start + int64(l.Job.Fio.RampTime))
	}
}

// leaveRamps lets lanes count whose ramps have ended. Periods that are over stay without their operations.
func (w *worker) leaveRamps() {
	if w.ramping == 0 {
		return
	}
	for i := range w.lanes {
		l := &w.lanes[i]
		if !l.ramping() || l.Closed != queue.StillOpen {
			continue
		}
		if ended := l.ramp.EndedAt.Load(); ended > 0 {
			w.ramping--
			l.beginMeasuring(max(ended, l.Start+int64(l.Job.Fio.RampTime), w.PeriodStart()))
		}
	}
}

// CountsFrom returns the moment from which operations of the first job's first clone count, on the workload's axis, and
// false where that is not known yet. It may be called while the workload runs.
func (r Run) CountsFrom() (nanos int64, known bool) {
	if len(r.phases) == 0 || len(r.phases[0]) == 0 {
		return 0, false
	}
	w := r.phases[0][0]
	w.lock()
	defer w.mu.Unlock()
	if !w.begun || len(w.lanes) == 0 || w.lanes[0].ramping() {
		return 0, false
	}
	return w.lanes[0].measureFrom, true
}
