// Package measuring turns what workers record into intervals and accounts.
//
//	operations that completed ──Recorder──▶ a Tally of each worker, by period ──▶ Collector ──▶ intervals, every second
//	calls of back ends, syncs, priorities, verification ──▶ Account, once at the end
//
// Recording is a few additions in memory that is allocated before the load starts. The package does not judge the
// numbers.
package measuring

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/stat"
)

// collector turns what the workers recorded into intervals. Periods end at multiples of the interval length on the
// run's time axis, so that intervals of several VMs cover the same seconds; the first and the last are cut to their
// true length, and a piece shorter than a tenth of the length is joined to its neighbor.
//
// It also watches itself: it asks to be woken every tick, and when it wakes far too late the whole generator was stopped
// or starved of CPU for that time.
type collector struct {
	of       load.Workload
	devices  []string // their names
	sources  []Source
	sink     load.Sink
	clock    *Clock
	length   int64
	passed   int64 // the last boundary
	ticked   int64 // when the collector last looked at the clock
	rest     interval.Effort
	boundary int64 // end of the running period
	splits   *Splits
	expected int64 // end of the load, 0: not known

	sequence int64
	now      interval.Interval // what was collected and not yet delivered
	silences []silence         // by source
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

// Source is a worker as the collector sees it. Calls come from the collector's goroutine.
type Source interface {
	// Take returns the periods that are over by a boundary.
	Take(boundary int64) []Period
	GiveBack(r *Recorder)
	// CPUNanos is the CPU time that the threads have used.
	CPUNanos() int64
	// Lap returns the most that one thread used and waited for a CPU since the former lap.
	Lap() (busiest, waited int64)
}

// Span is when a load starts on its clock, and when it will end, 0 if unknown.
type Span struct{ Start, Expected int64 }

// NewCollector returns a collector.
func NewCollector(of load.Workload, devices []string, clock *Clock, splits *Splits, span Span) *collector {
	start := span.Start
	t := &collector{of: of, devices: devices, clock: clock, length: int64(of.IntervalLength), expected: span.Expected}
	t.splits, t.passed = splits, start
	t.boundary = splits.Next(start, t.length)
	t.lastTick, t.withheld = start, thread.WithheldNow()
	t.begin(start)
	return t
}

// begin starts an empty interval.
func (t *collector) begin(start int64) {
	w := &t.of
	t.now = interval.Interval{
		Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill,
		Sequence: t.sequence, StartNanos: start,
	}
}

// Run delivers intervals until finished says when the load ended; the last one has Final set.
func (t *collector) Run(sources []Source, sink load.Sink, finished <-chan int64) {
	t.take(sources, sink)
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
		now := t.clock.Now()
		t.tick(now)
		t.lastTick = t.clock.Now()
		wait := tickNanos
		if t.held == 0 {
			wait = min(wait, max(t.boundary-t.lastTick, 1))
		}
		timer.Reset(time.Duration(wait))
	}
}

// take notes whose records it collects, and for whom.
func (t *collector) take(sources []Source, sink load.Sink) {
	t.sources, t.sink = sources, sink
	t.silences = make([]silence, len(sources))
	for i := range t.silences {
		t.silences[i].until = t.now.StartNanos
	}
}

// tick notes a stall and closes the periods that are over at now.
func (t *collector) tick(now int64) {
	t.ticked = now
	if late := now - t.lastTick - tickNanos; late > stallNanosMin {
		t.stalls = append(t.stalls, stall{from: now - late, to: now})
	}
	for t.boundary = t.splits.Next(t.passed, t.length); t.boundary <= now; t.boundary = t.splits.Next(t.passed, t.length) {
		t.release()
		boundary := t.boundary
		t.passed = boundary
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

// hold reports whether the piece that a boundary would cut off, before it or after it, is too short to stand alone.
func (t *collector) hold(boundary int64) bool {
	short := t.length / 10
	if t.splits.at(boundary) {
		return false
	}
	if boundary-t.now.StartNanos < short {
		return false
	}
	return t.expected >= boundary && t.expected-boundary < short
}

// release delivers an interval that was held, because the load went on after all.
func (t *collector) release() {
	if t.held != 0 {
		held := t.held
		t.held = 0
		t.deliver(held)
	}
}

// collect takes from all workers what they recorded up to the boundary.
func (t *collector) collect(boundary int64) {
	var due, issued, dropped uint64
	var waiting *stat.Histogram
	inFlight := 0
	for i, w := range t.sources {
		var last Period
		for _, last = range w.Take(boundary) {
			t.silences[i].add(last.record, last.End)
			if last.record != nil {
				last.record.AddTo(&t.now, t.devices)
				w.GiveBack(last.record)
			}
		}
		due, issued, inFlight = due+last.Due, issued+last.Issued, inFlight+last.InFlight
		dropped += last.Dropped
		if last.Waiting != nil {
			waiting = mergeInto(waiting, last.Waiting)
		}
	}
	t.now.Due += SaturatingSub(due, t.due)
	t.due = max(t.due, due)
	t.backlog = SaturatingSub(due, issued)
	t.now.NotIssued += SaturatingSub(dropped, t.dropped)
	t.dropped = max(t.dropped, dropped)
	t.now.InFlight, t.now.Waiting = uint64(inFlight), waiting
}

// deliver closes the collected interval at end and begins the next one there, unless it is a short first piece.
func (t *collector) deliver(end int64) {
	if t.sequence == 0 && end-t.now.StartNanos < t.length/10 && !t.splits.at(end) {
		return
	}
	t.close(end)
	t.now.Backlog = t.backlog
	t.sink.Interval(t.now)
	t.sequence++
	t.begin(end)
}

// final delivers what is left when all workers have ended.
func (t *collector) final(end int64) {
	t.collect(end)
	t.close(max(end, t.now.StartNanos))
	t.now.Backlog, t.now.Final = t.backlog, true
	t.sink.Interval(t.now)
}

func (t *collector) close(end int64) {
	t.now.LengthNanos = end - t.now.StartNanos
	for i := range t.now.Early {
		t.now.Early[i].FromNanos -= t.now.StartNanos
		t.now.Early[i].ToNanos -= t.now.StartNanos
	}
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
	for _, w := range t.sources {
		cpu += w.CPUNanos()
	}
	t.now.Gaps = gapsOf(t.silences, t.now.StartNanos, end)
	for i := range t.silences {
		s := &t.silences[i]
		s.gaps, s.until = s.gaps[:0], max(s.until, end)
	}
	t.now.Effort = t.effort(t.now.LengthNanos, t.ticked-end)
	t.now.CPUNanos = shareOf(max(0, cpu-t.cpu), t.now.LengthNanos, t.ticked-end)
	t.cpu += t.now.CPUNanos
}
