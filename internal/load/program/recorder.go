package program

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// Operation is one operation of a program. Times are nanoseconds on the run's axis.
type Operation struct {
	Kind    int    // index in Engine.Operations
	End     int64  // its completion
	Latency int64  // until End from its intended start, or from its start without a rate
	Lag     int64  // from its intended start to its start
	Bytes   uint64 // that it moved
	Skipped bool   // due, and never issued
	Failed  string // class of its failure
}

// Recorder sorts operations into Intervals, in whatever order they become known, and delivers Intervals once they are complete.
// Only one goroutine uses it.
type Recorder struct {
	Workload load.Workload
	Sink     load.Sink
	Rated    bool                 // operations have an intended start
	Clients  int                  // operations in flight at all times of a load without a rate; 0: unknown
	Gauges   interval.GaugeValues // of an interval in which none were noted: at first these, then the last ones

	// Totals of all operations.
	Done, Skipped, Failed uint64

	open        []*interval.Interval // without a gap; the last one may still grow
	sequence    int64
	cpu         time.Duration
	first, last int64 // start of the first operation and end of the last one
	late        map[int]*stat.Histogram
}

// Period is the regular length of an interval.
func (r *Recorder) Period() time.Duration {
	if r.Workload.IntervalLength > 0 {
		return r.Workload.IntervalLength
	}
	return time.Second
}

// First is the start of the first operation, 0 before there is one.
func (r *Recorder) First() int64 { return r.first }

// Begin starts the first interval. It comes before all other calls.
func (r *Recorder) Begin(at int64) { r.extend(at) }

func (r *Recorder) extend(start int64) {
	w, period := &r.Workload, int64(r.Period())
	r.open = append(r.open, &interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill,
		StartNanos: start, LengthNanos: (start/period+1)*period - start})
}

// slotsMax bounds how far ahead of the present a time may lie.
const slotsMax = 10_000

// slot returns the open interval of a time; of a time before all of them, the first.
func (r *Recorder) slot(at int64) *interval.Interval {
	for range slotsMax {
		last := r.open[len(r.open)-1]
		if at < last.EndNanos() {
			break
		}
		r.extend(last.EndNanos())
	}
	for i := len(r.open) - 1; i > 0; i-- {
		if at >= r.open[i].StartNanos {
			return r.open[i]
		}
	}
	return r.open[0]
}

// Add counts one operation. If the interval of its end was delivered, it counts in the oldest one that was not.
func (r *Recorder) Add(o Operation) {
	iv := r.slot(o.End)
	begin := o.End - o.Latency
	if r.first == 0 || begin < r.first {
		r.first = begin
	}
	r.last = max(r.last, o.End)
	if r.Rated {
		r.slot(begin).Due++
	}
	traffic := &iv.Directions[o.Kind]
	switch {
	case o.Skipped:
		r.Skipped++
		iv.NotIssued++
	case o.Failed != "":
		r.Failed++
		if traffic.Errors == nil {
			traffic.Errors = map[string]uint64{}
		}
		traffic.Errors[o.Failed]++
	default:
		r.Done++
		traffic.Operations++
		traffic.Bytes += o.Bytes
		traffic.Service = record(traffic.Service, o.Latency-o.Lag)
		if r.Rated {
			traffic.Response = record(traffic.Response, o.Latency)
		}
	}
}

// Drop counts operations that were due until a time, and that a load never issued.
func (r *Recorder) Drop(at int64, operations uint64) {
	iv := r.slot(at)
	iv.Due += operations
	iv.NotIssued += operations
	r.Skipped += operations
}

// besideEvery is how often intervals of a prefill without operations are looked at.
const besideEvery = 200 * time.Millisecond

// Beside returns what work does, such as a prefill by a program, and meanwhile delivers the intervals that pass. Work does not use the
// Recorder.
func (r *Recorder) Beside(axis Axis, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(besideEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			r.Release(axis.Now())
		}
	}
}

// Count counts operations of a program that does not state their latencies: those that were completed by a time, since the call before.
func (r *Recorder) Count(kind int, at int64, operations, bytes uint64) {
	iv := r.slot(at)
	traffic := &iv.Directions[kind]
	traffic.Operations += operations
	traffic.Bytes += bytes
	if r.Rated {
		iv.Due += operations
	}
	r.Done += operations
	r.last = max(r.last, at)
}

// Spread counts such operations that were completed at a constant rate from one time to another, in the intervals of these times.
func (r *Recorder) Spread(kind int, from, to int64, operations, bytes uint64) {
	period := int64(r.Period())
	for at := from; ; {
		end := min((at/period+1)*period, to)
		n, b := operations, bytes
		if end < to {
			part := float64(end-at) / float64(to-at)
			n, b = min(n, uint64(float64(n)*part)), min(b, uint64(float64(b)*part))
		}
		r.Count(kind, max(end-1, from), n, b)
		if end >= to {
			return
		}
		operations, bytes, at = operations-n, bytes-b, end
	}
}

// CountTimed counts operations whose latencies a program states as a histogram, in a load without a rate: those that were completed by a
// time, since the call before.
func (r *Recorder) CountTimed(kind int, at int64, latencies *stat.Histogram) {
	r.Count(kind, at, latencies.Count(), 0)
	traffic := &r.slot(at).Directions[kind]
	if traffic.Service == nil {
		traffic.Service = &stat.Histogram{}
	}
	traffic.Service.Merge(latencies)
}

// CountFailed counts failures of such a program, of one class, in the same way.
func (r *Recorder) CountFailed(kind int, at int64, class string, failures uint64) {
	if failures == 0 {
		return
	}
	traffic := &r.slot(at).Directions[kind]
	if traffic.Errors == nil {
		traffic.Errors = map[string]uint64{}
	}
	traffic.Errors[class] += failures
	r.Failed += failures
	r.last = max(r.last, at)
}

// Latencies are those of all operations of a kind that Count counted. They are known only at the end, and go to the last interval;
// with a rate, they count from the schedule.
func (r *Recorder) Latencies(kind int, h *stat.Histogram) {
	if r.late == nil {
		r.late = map[int]*stat.Histogram{}
	}
	r.late[kind] = h
}

func record(h *stat.Histogram, nanos int64) *stat.Histogram {
	if h == nil {
		h = &stat.Histogram{}
	}
	h.Record(uint64(nanos))
	return h
}

// Gauge notes values at a time.
func (r *Recorder) Gauge(values interval.GaugeValues, at int64) {
	r.slot(at).Gauges = values
}

// Effort notes the CPU time that the program used until a time.
func (r *Recorder) Effort(cpu time.Duration, e interval.Effort, at int64) {
	iv := r.slot(at)
	iv.Join(e)
	if cpu > r.cpu {
		iv.CPUNanos += int64(cpu - r.cpu)
		r.cpu = cpu
	}
}

// Release delivers the intervals that end by a time.
func (r *Recorder) Release(until int64) {
	r.slot(until)
	for len(r.open) > 1 && r.open[0].EndNanos() <= until {
		r.deliver(false)
	}
}

// discard removes the first interval if it ended before the first operation began: in it, the program started and connected.
func (r *Recorder) discard() bool {
	iv := r.open[0]
	if r.sequence != 0 || len(r.open) < 2 || r.first < iv.EndNanos() || !idle(iv) {
		return false
	}
	r.open = r.open[1:]
	r.open[0].CPUNanos += iv.CPUNanos
	if iv.Gauges != nil {
		r.Gauges = iv.Gauges
	}
	return true
}

// idle tells that nothing was due, done or failed in an interval.
func idle(iv *interval.Interval) bool {
	for i := range iv.Directions {
		if d := &iv.Directions[i]; d.Operations > 0 || len(d.Errors) > 0 {
			return false
		}
	}
	return iv.Due == 0 && iv.NotIssued == 0
}

func (r *Recorder) deliver(final bool) {
	if r.discard() {
		return
	}
	iv := r.open[0]
	r.open = r.open[1:]
	if r.sequence == 0 && r.first > iv.StartNanos && r.first < iv.EndNanos() {
		// Before, the program started and connected.
		iv.StartNanos, iv.LengthNanos = r.first, iv.EndNanos()-r.first
	}
	iv.Sequence, iv.Final = r.sequence, final
	if iv.Gauges == nil {
		iv.Gauges = slices.Clone(r.Gauges)
	}
	r.Gauges = iv.Gauges
	iv.BusiestNanos, iv.WaitedNanos = min(iv.BusiestNanos, iv.LengthNanos), min(iv.WaitedNanos, iv.LengthNanos)
	if !final && !iv.Prefill && !r.Rated {
		iv.InFlight = uint64(r.Clients)
	}
	r.sequence++
	r.Sink.Interval(*iv)
}

// Finish delivers everything. The last interval ends at a time, or with the last operation.
func (r *Recorder) Finish(at int64) {
	end := max(at, r.last+1, r.open[0].StartNanos)
	r.slot(end)
	for len(r.open) > 1 && r.open[len(r.open)-1].StartNanos >= end {
		surplus := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		kept := r.open[len(r.open)-1]
		kept.Join(surplus.Effort)
		kept.CPUNanos, kept.Due, kept.NotIssued = kept.CPUNanos+surplus.CPUNanos, kept.Due+surplus.Due, kept.NotIssued+surplus.NotIssued
	}
	last := r.open[len(r.open)-1]
	last.LengthNanos = end - last.StartNanos
	for len(r.open) > 1 {
		r.deliver(false)
	}
	for kind, h := range r.late {
		if traffic := &last.Directions[kind]; r.Rated {
			traffic.Response = h
		} else {
			traffic.Service = h
		}
	}
	r.deliver(true)
}
