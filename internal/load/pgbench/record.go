package pgbench

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// holdMax is how long an interval waits for lines that pgbench has not written yet. Later ones count in a later interval.
const holdMax = 30 * time.Second

// recorder sorts transactions into intervals. Only one goroutine uses it.
type recorder struct {
	workload load.Workload
	config   *config
	sink     load.Sink

	open     []*interval.Interval // without a gap; the last one may still grow
	sequence int64
	gauges   interval.GaugeValues // of the last interval
	cpu      time.Duration
	first    int64 // start of the first transaction, on the axis; 0: none yet
	last     int64 // end of the last one

	processed, skipped, failed uint64
}

func (r *recorder) period() time.Duration {
	if r.workload.IntervalLength > 0 {
		return r.workload.IntervalLength
	}
	return time.Second
}

// extend appends an interval that begins at a time.
func (r *recorder) extend(start int64) {
	w, period := &r.workload, int64(r.period())
	r.open = append(r.open, &interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill,
		StartNanos: start, LengthNanos: (start/period+1)*period - start})
}

// slotsMax bounds how far ahead of the present a time in a log may lie.
const slotsMax = 10_000

// slot returns the open interval of a time; of a time before all of them, the first.
func (r *recorder) slot(at int64) *interval.Interval {
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

// add counts one transaction, whose end is a time on the axis.
func (r *recorder) add(t transaction) {
	iv := r.slot(t.end)
	begin := t.end - t.latency
	if r.first == 0 || begin < r.first {
		r.first = begin
	}
	r.last = max(r.last, t.end)
	if r.config.rate > 0 {
		r.slot(begin).Due++
	}
	traffic := &iv.Directions[t.script]
	switch {
	case t.skipped:
		r.skipped++
		iv.NotIssued++
	case t.failed != "":
		r.failed++
		if traffic.Errors == nil {
			traffic.Errors = map[string]uint64{}
		}
		traffic.Errors[t.failed]++
	default:
		r.processed++
		traffic.Operations++
		traffic.Service = record(traffic.Service, t.latency-t.lag)
		if r.config.rate > 0 {
			traffic.Response = record(traffic.Response, t.latency)
		}
	}
}

func record(h *stat.Histogram, nanos int64) *stat.Histogram {
	if h == nil {
		h = &stat.Histogram{}
	}
	h.Record(uint64(nanos))
	return h
}

// gauge notes what the server said at a time.
func (r *recorder) gauge(values interval.GaugeValues, at int64) {
	r.slot(at).Gauges = values
}

// effort notes the CPU time that pgbench used until a time.
func (r *recorder) effort(cpu time.Duration, e interval.Effort, at int64) {
	iv := r.slot(at)
	iv.Join(e)
	if cpu > r.cpu {
		iv.CPUNanos += int64(cpu - r.cpu)
		r.cpu = cpu
	}
}

// release delivers the intervals that end by a time.
func (r *recorder) release(until int64) {
	r.slot(until)
	for len(r.open) > 1 && r.open[0].EndNanos() <= until {
		r.deliver(false)
	}
}

func (r *recorder) deliver(final bool) {
	iv := r.open[0]
	r.open = r.open[1:]
	if r.sequence == 0 && r.first > iv.StartNanos && r.first < iv.EndNanos() {
		// Before, pgbench started and connected.
		iv.StartNanos, iv.LengthNanos = r.first, iv.EndNanos()-r.first
	}
	iv.Sequence, iv.Final = r.sequence, final
	if iv.Gauges == nil {
		iv.Gauges = slices.Clone(r.gauges)
	}
	r.gauges = iv.Gauges
	iv.BusiestNanos, iv.WaitedNanos = min(iv.BusiestNanos, iv.LengthNanos), min(iv.WaitedNanos, iv.LengthNanos)
	if !final && !iv.Prefill && r.config.rate == 0 {
		iv.InFlight = uint64(r.config.clients)
	}
	r.sequence++
	r.sink.Interval(*iv)
}

// finish delivers everything. The last interval ends at a time, or with the last transaction.
func (r *recorder) finish(at int64) {
	end := max(at, r.last+1, r.open[0].StartNanos)
	r.slot(end)
	for len(r.open) > 1 && r.open[len(r.open)-1].StartNanos >= end {
		surplus := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		kept := r.open[len(r.open)-1]
		kept.Join(surplus.Effort)
		kept.CPUNanos += surplus.CPUNanos
	}
	last := r.open[len(r.open)-1]
	last.LengthNanos = end - last.StartNanos
	for len(r.open) > 1 {
		r.deliver(false)
	}
	r.deliver(true)
}
