package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Observer receives the completed operations of one lane in batches, on the thread that drives the load. Its work
// delays the next operations of that thread, so it must not allocate, and must hand work that takes longer than copying
// to another goroutine. The engine owns the batch and overwrites it after the call.
type Observer interface {
	// Begin comes before the first operation that counts: from measureFrom on, on the workload's axis, operations do.
	// It comes before all others too, and again when a ramp ends that a size ends.
	Begin(measureFrom int64)
	// Completed comes in order of completion; operations that were reaped together have the same Completed time.
	Completed(batch []Completed)
}

// Completed is one operation that ended. Times are nanoseconds on the workload's axis.
type Completed struct {
	Offset, Size int64
	// Intended is when it was due, in a closed loop when it was submitted.
	Intended, Submitted int64
	// Returned is when the system call that submitted it returned; 0 where that was not measured or has no meaning.
	Returned  int64
	Completed int64
	Device    int32 // index in Workload.Devices
	Result    int64 // bytes, or −errno
	Direction interval.Direction
	Sync      bool            // it flushed, and moved nothing
	Measured  bool            // it was due after the ramp
	Priority  thread.Priority // its own, or that of its job; 0: none is set
}

// OK reports whether the whole operation was done.
func (c *Completed) OK() bool { return c.Result == c.Size }

// Observe sets an observer for each lane; of returns nil for a lane without one. It must be called before Run.
func (r Run) Observe(of func(job string, clone int) Observer) {
	for _, w := range r.workers() {
		for i := range w.lanes {
			l := &w.lanes[i]
			l.observer = of(l.Job.Fio.Name, l.clone)
		}
		w.observed.batch = make([]Completed, 0, len(w.slots))
	}
}

// TimeSubmissions measures the duration of the submitting system call for every operation: an account then has
// Submissions. It costs one more clock reading per batch, and with io_uring one more system call, because one call
// otherwise submits a batch and waits for it. Back ends that execute the operation in the call have nothing to measure.
// It must be called before Run.
func (r Run) TimeSubmissions() {
	for _, w := range r.workers() {
		if timer, ok := w.backend.(backend.SubmissionTimer); ok {
			timer.TimeSubmissions(r.shared.clock.Now)
			w.submissions = timer
			for d := range w.account.Submissions {
				w.account.Submissions[d].Reserve()
			}
		}
	}
}

// noteSubmission keeps when the call returned that submitted the batch.
func (w *worker) noteSubmission() {
	at := w.submissions.SubmittedAt()
	for _, i := range w.batch.Slots[:w.batch.Count] {
		w.slots[i].Returned = at
	}
}

// observed is what completed and is not yet told to the observer of its lane.
type observed struct {
	batch []Completed
	lane  *lane // of the batch
}

// note notes one completion.
func (o *observed) note(l *lane, s *backend.Slot, result int32, now int64) {
	if o.lane != l {
		o.tell()
		o.lane = l
	}
	moved := int64(result)
	if result == backend.WholeSize {
		moved = s.Size
	}
	priority := s.Priority
	if priority == 0 {
		priority = l.usual
	}
	o.batch = append(o.batch, Completed{
		Offset: s.Offset, Size: s.Size, Intended: s.Intended, Submitted: s.Submitted, Returned: s.Returned, Completed: now,
		Device: s.Device, Result: moved, Direction: interval.Direction(s.Direction), Sync: s.Kind >= backend.OpSync,
		Measured: s.Intended >= l.measureFrom, Priority: priority,
	})
}

// tell hands over what was noted.
func (o *observed) tell() {
	if len(o.batch) > 0 {
		o.lane.observer.Completed(o.batch)
		o.batch = o.batch[:0]
	}
}
