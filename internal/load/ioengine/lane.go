package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/oplog"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/shares"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
)

// lane is one clone of a job while it runs: its queue, its schedule and its streams, one for each device. It belongs
// to one worker and is touched under that worker's lock only.
type lane struct {
	queue.Queue
	schedule
	depth
	moments
	deferred
	clone    int             // among those of its job
	usual    thread.Priority // of operations without one of their own
	failures int             // in a row
	slots    []backend.Slot  // of this lane

	// What a job asks for besides. Each is nil where it does not.
	think     *think
	syncs     *syncs
	watch     *watch
	flow      *shares.Flow // progress is balanced against that of others
	ramp      *shares.Ramp // a size ends the ramp
	verify    *verifying.Verifier
	replay    *oplog.Replay // operations come from a log
	recording *oplog.Recording
	observer  Observer
}

// moments are when a lane does something else than before.
type moments struct {
	measureFrom int64 // end of the ramp: operations before do not count; never while a size has yet to end it
	end         int64 // no operation starts from here on
	pauseUntil  int64 // thinktime, flow_sleep, or a rest after many errors in a row
}

// depth is how many operations of a lane are in flight.
type depth struct {
	reserve   int  // of the free slots that stay so, where a search has a depth below that of the job
	submitMax int  // operations that are made before they are handed over
	low       int  // iodepth_low: the queue is filled again when it has drained to this
	draining  bool // it was full and has not
}

func newLane(spec *program.Clone, job *program.Job, files []*backend.File) lane {
	l := lane{Queue: queue.Queue{Spec: spec, Job: job, Sequence: program.NewSequence(spec, job)}, usual: thread.PriorityOf(&job.Fio)}
	l.Targets, l.syncs = make([]queue.Target, len(l.Streams)), newSyncs(job)
	for i := range l.Streams {
		if len(files) == 0 {
			continue
		}
		f := files[l.Streams[i].Device]
		if l.Targets[i].File = f; f != nil && !f.Direct && job.DropsCache() {
			l.Streams[i].Passes.Between = f.Forget
		}
	}
	if job.Replay != nil {
		l.replay = oplog.NewReplay(job.Replay, job.Fio.Replay.NoStall)
		return l
	}
	l.submitMax = job.SubmitMax()
	l.schedule, l.think = newSchedule(spec, &l.Active), newThink(job)
	if l.low = job.Fio.IODepthLow; l.low <= 0 || l.low > job.Depth {
		l.low = job.Depth
	}
	l.watch = newWatch(job)
	return l
}

// begin fixes the lane's times on the run's axis.
func (l *lane) begin(start int64) {
	j := &l.Job.Fio
	l.Start = start + l.Spec.Delay(l.Job)
	l.end = backend.Never
	l.schedule.begin(l.Spec, l.Start, j.RateProcess == "poisson")
	if l.ramp != nil {
		l.beginRamp()
	} else {
		l.beginMeasuring(l.Start + int64(j.RampTime))
	}
}

// choose returns the direction of the next operation and when it was due; wait says from when on there may be one,
// and is 0 when there is one now.
func (l *lane) choose(now int64) (direction int, intended, wait int64) {
	if l.timed {
		first, due := l.schedule.first()
		if due <= now {
			return first, due, 0
		}
		wait = due
	}
	if d := l.Mixed(&l.paced); d >= 0 {
		return d, 0, 0
	}
	return 0, 0, wait
}

// fill puts every operation that may start now into the worker's batch, and returns when to look again.
func (l *lane) fill(w *worker, now int64) int64 {
	if wake, busy := l.verify.Proceed(&l.Queue, w.report, now); busy {
		return wake
	}
	if l.Closed != queue.StillOpen {
		l.rest(w)
		l.syncs.finish(&l.Queue)
		if l.holds {
			return backend.Never
		}
		return l.verify.Closed(&l.Queue, w.report)
	}
	if l.recording != nil && !l.recording.Ready(&w.shared.stop, 2*l.Job.Depth) {
		return now + recordPollNanos
	}
	if l.replay != nil {
		return l.fillReplay(w, now)
	}
	if l.Job.Kind == backend.KindCPU {
		return l.fillBurn(w, now)
	}
	switch {
	case now < l.Start:
		return l.Start
	case now >= l.end:
		return l.expire(w, now)
	case l.think != nil && l.think.waiting && l.InFlight > 0:
		return backend.Never
	case l.think != nil && l.think.waiting && l.pauseUntil == 0:
		return l.think.pause(l, w, now)
	case now < l.pauseUntil:
		return l.pauseUntil
	case l.draining && l.InFlight > l.low:
		return backend.Never
	}
	l.draining, l.pauseUntil = false, 0
	if l.flow != nil {
		l.flow.Join()
	}
	l.dropLate(now, l)
	if l.think != nil && l.think.over(l.Start, now) {
		if l.InFlight > 0 {
			return backend.Never
		}
		return l.think.pause(l, w, now)
	}
	return l.fillQueue(w, now)
}

// fillQueue issues until the queue is full, nothing is due, or submitMax operations were made.
func (l *lane) fillQueue(w *worker, now int64) int64 {
	for first := l.Batch.Count; len(l.Free) > l.reserve && !l.verify.Busy(); {
		if l.Batch.Count-first >= l.submitMax {
			return now
		}
		if l.syncs != nil && l.syncs.owed != [3]int{} {
			l.syncs.issue(&l.Queue)
			continue
		}
		if len(l.trimmed) > 0 {
			l.issueTrimmed(w)
			continue
		}
		if l.verify != nil && !l.holds {
			if write, some := l.verify.NextTrim(&l.Queue); some {
				l.held, l.holds = trimOf(&write), true
			}
		}
		if l.holds {
			if l.overlaps(&l.held) {
				return backend.Never
			}
			l.holds = false
			l.put(w, &l.held)
			continue
		}
		if l.flow != nil && l.flow.Over() {
			return l.heldBack(now)
		}
		direction, intended, wait := l.choose(now)
		if wait > 0 {
			return min(wait, l.end)
		}
		if !l.issue(w, direction, intended) {
			l.syncs.finish(&l.Queue)
			return l.afterwards()
		}
		if l.think != nil && l.think.waiting {
			return backend.Never
		}
	}
	l.draining = l.low < l.Job.Depth
	return backend.Never
}

// catchUp issues what was due in the last moment before the end, as far as slots are free. Otherwise a worker that wakes
// some microseconds late would leave operations out.
func (l *lane) catchUp(w *worker) {
	for len(l.Free) > l.reserve && l.timed && (l.think == nil || !l.think.waiting) && !l.verify.Busy() && !l.verify.TrimsFirst() {
		direction, intended, wait := l.choose(l.end - 1)
		if wait > 0 || !l.paced[direction] || l.flow != nil && l.flow.Over() || !l.issue(w, direction, intended) {
			return
		}
	}
}

// issue takes the next operation of the direction; it returns false when the lane has done its part.
func (l *lane) issue(w *worker, direction int, intended int64) bool {
	at, offset, size := l.Sequence.Next(direction)
	if at < 0 {
		l.close(queue.ClosedDone)
		return false
	}
	if l.flow != nil {
		l.flow.Count()
	}
	o := operation{stream: int32(at), direction: uint8(direction), offset: offset, size: size, intended: backend.Never, number: l.N - 1}
	if l.paced[direction] {
		o.intended = intended
		l.advance(direction, float64(size))
	}
	if (l.Job.Fio.SerializeOverlap || l.verify.Orders()) && l.overlaps(&o) {
		l.held, l.holds = o, true
	} else {
		l.put(w, &o)
	}
	if l.verify != nil {
		l.verify.Chose(direction)
	}
	if l.think != nil {
		l.think.count()
	}
	return true
}

// put hands one operation to the back end.
func (l *lane) put(w *worker, o *operation) {
	s := &l.Streams[o.stream]
	sl := l.Take()
	sl.Offset, sl.Size, sl.Stream = o.offset, o.size, o.stream
	sl.Device, sl.File = s.Device, l.Targets[o.stream].File
	sl.Direction, sl.Kind, sl.Intended = o.direction, backend.OpKind(o.direction), o.intended
	sl.Busy, sl.Number = true, o.number
	if l.Job.Kind == backend.KindNames {
		sl.Size = 0
	}
	if every := l.Job.Fio.ForceAsync; every > 0 {
		sl.Async = l.N%uint64(every) == 0
	}
	if l.Job.Priorities != nil {
		l.prioritize(s, sl)
	}
	if o.direction == uint8(interval.Write) {
		l.wrote(o.stream, sl, w.pool)
	}
}

func (l *lane) close(why queue.ClosedReason) {
	l.Closed = why
	l.flow.Leave()
}

// stop closes the lane before its time.
func (l *lane) stop(now int64) {
	if l.Closed == queue.StillOpen {
		l.end = min(l.end, max(now, l.measureFrom))
		l.close(queue.ClosedTime)
	}
	l.verify.Abort()
}

// expire closes the lane at its end.
func (l *lane) expire(w *worker, now int64) int64 {
	l.dropLate(now, l)
	l.catchUp(w)
	l.close(queue.ClosedTime)
	l.syncs.finish(&l.Queue)
	return l.afterwards()
}

// afterwards returns when to look again once the lane has closed: at once where it has to verify.
func (l *lane) afterwards() int64 {
	if l.verify.Pending() && l.InFlight == 0 {
		return 0
	}
	return backend.Never
}

// fillBurn is fill for a lane that only computes: one cycle after the other until its time is over.
func (l *lane) fillBurn(w *worker, now int64) int64 {
	switch {
	case now < l.Start:
		return l.Start
	case now >= l.end:
		l.close(queue.ClosedTime)
	case len(l.Free) > 0:
		sl := l.Take()
		sl.Kind, sl.Direction, sl.Intended, sl.Size, sl.Span = backend.OpBurn, 0, backend.Never, 0, l.end-now
	}
	return backend.Never
}
