package ioengine

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// timeline turns what the workers recorded into intervals. Periods end at multiples of the interval length on the
// run's time axis, so that intervals of several VMs cover the same seconds; the first and the last are cut to their
// true length, and a piece shorter than a tenth of the length is joined to its neighbour.
//
// It also watches itself: it asks to be woken every tick, and when it wakes far too late the whole generator was stopped
// or starved of CPU for that time.
type timeline struct {
	instance *instance
	workers  []*worker
	sink     load.Sink
	length   int64
	boundary int64 // end of the running period
	expected int64 // end of the load, 0: not known

	sequence int64
	now      interval.Interval // what was collected and not yet delivered
	held     int64             // a boundary whose delivery waits for the near end of the load
	due      uint64            // since the start, up to the last delivery
	backlog  uint64
	dropped  uint64 // since the start, up to the last collection
	cpu      int64
	stalls   []stall
	withheld thread.Withheld // as of the last delivery
	lastTick int64
}

// stall is a time in which the generator did not run.
type stall struct{ from, to int64 }

const (
	tickNanos = int64(10 * time.Millisecond)
	// stallNanosMin is how late a tick may come before the lateness counts as a stall.
	stallNanosMin = int64(25 * time.Millisecond)
)

func newTimeline(in *instance, workers []*worker, start int64, sink load.Sink) *timeline {
	t := &timeline{instance: in, workers: workers, sink: sink, length: in.shared.period}
	t.boundary = floorTo(start, t.length) + t.length
	t.expected = in.expectedEnd(start)
	t.lastTick, t.withheld = start, thread.WithheldNow()
	t.begin(start)
	return t
}

// begin starts an empty interval.
func (t *timeline) begin(start int64) {
	w := &t.instance.program.Workload
	t.now = interval.Interval{
		Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill,
		Sequence: t.sequence, StartNanos: start,
	}
}

// run delivers intervals until finished says when the load ended; the last one has Final set.
func (t *timeline) run(finished <-chan int64) {
	timer := time.NewTimer(time.Duration(tickNanos))
	defer timer.Stop()
	for {
		select {
		case end := <-finished:
			t.tick(end)
			t.final(end)
			return
		case <-timer.C:
		}
		now := t.instance.shared.clock.now()
		t.tick(now)
		t.lastTick = t.instance.shared.clock.now()
		wait := tickNanos
		if t.held == 0 {
			wait = min(wait, max(t.boundary-t.lastTick, 1))
		}
		timer.Reset(time.Duration(wait))
	}
}

// tick notes a stall and closes the periods that are over at now.
func (t *timeline) tick(now int64) {
	if late := now - t.lastTick - tickNanos; late > stallNanosMin {
		t.stalls = append(t.stalls, stall{from: now - late, to: now})
	}
	for t.boundary <= now {
		t.release()
		boundary := t.boundary
		t.boundary += t.length
		t.collect(boundary)
		if t.hold(boundary) {
			t.held = boundary
			continue
		}
		t.deliver(boundary)
	}
	if t.held != 0 && now > t.held+t.length/4 {
		t.release()
	}
}

// hold tells whether the piece that a boundary would cut off, before it or after it, is too short to stand alone.
func (t *timeline) hold(boundary int64) bool {
	short := t.length / 10
	if boundary-t.now.StartNanos < short {
		return false
	}
	return t.expected >= boundary && t.expected-boundary < short
}

// release delivers an interval that was held, because the load went on after all.
func (t *timeline) release() {
	if t.held != 0 {
		held := t.held
		t.held = 0
		t.deliver(held)
	}
}

// collect takes from all workers what they recorded up to the boundary.
func (t *timeline) collect(boundary int64) {
	var due, issued, dropped uint64
	inFlight := 0
	for _, w := range t.workers {
		var last period
		for _, last = range w.take(boundary) {
			if last.record != nil {
				last.record.addTo(&t.now, t.instance.names)
				w.giveBack(last.record)
			}
		}
		due, issued, inFlight = due+last.due, issued+last.issued, inFlight+last.inFlight
		dropped += last.dropped
	}
	t.now.Due += saturatingSub(due, t.due)
	t.due = max(t.due, due)
	t.backlog = saturatingSub(due, issued)
	t.now.NotIssued += saturatingSub(dropped, t.dropped)
	t.dropped = max(t.dropped, dropped)
	t.now.InFlight = uint64(inFlight)
}

// deliver closes the collected interval at end and begins the next one there, unless it is a short first piece.
func (t *timeline) deliver(end int64) {
	if t.sequence == 0 && end-t.now.StartNanos < t.length/10 {
		return
	}
	t.close(end)
	t.now.Backlog = t.backlog
	t.sink.Interval(t.now)
	t.sequence++
	t.begin(end)
}

// final delivers what is left when all workers have ended.
func (t *timeline) final(end int64) {
	t.collect(end)
	t.close(max(end, t.now.StartNanos))
	t.now.NotIssued, t.now.InFlight, t.now.Final = t.now.NotIssued+t.backlog, 0, true
	t.sink.Interval(t.now)
}

func (t *timeline) close(end int64) {
	t.now.LengthNanos = end - t.now.StartNanos
	for i := range t.stalls {
		s := &t.stalls[i]
		if overlap := min(s.to, end) - max(s.from, t.now.StartNanos); overlap > 0 {
			t.now.StalledNanos += overlap
		}
	}
	for len(t.stalls) > 0 && t.stalls[0].to <= end {
		t.stalls = t.stalls[1:]
	}
	var cpu int64
	for _, w := range t.workers {
		cpu += w.cpuNanos()
	}
	t.now.Effort = t.effort(t.now.LengthNanos)
	t.now.CPUNanos = max(0, cpu-t.cpu)
	t.cpu = max(t.cpu, cpu)
}

// take ends the periods up to boundary for a worker that has not done so itself, and returns them.
func (w *worker) take(boundary int64) []period {
	w.lock()
	defer w.mu.Unlock()
	w.closePeriods(boundary)
	if w.periodEnd > boundary && (len(w.periods) == 0 || w.periods[len(w.periods)-1].end < boundary) {
		// The load's end lies inside a period.
		w.closePeriod(boundary)
	}
	count := 0
	for count < len(w.periods) && w.periods[count].end <= boundary {
		count++
	}
	taken := append([]period(nil), w.periods[:count]...)
	w.periods = append(w.periods[:0], w.periods[count:]...)
	return taken
}

// giveBack returns an emptied recorder.
func (w *worker) giveBack(r *recorder) {
	w.lock()
	defer w.mu.Unlock()
	if len(w.spare) < sparesOfWorker {
		w.spare = append(w.spare, r)
	}
}

// cpuNanos returns the CPU time that the worker's threads have used.
func (w *worker) cpuNanos() int64 {
	w.lock()
	own := w.cpu.Nanos()
	w.mu.Unlock()
	if w.backend == nil {
		return own
	}
	return own + w.backend.CPUNanos()
}
