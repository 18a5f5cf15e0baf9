package sysbench

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// record turns reports and the summary into intervals. Reports have rates with two digits. What they add up to differs a little from the
// summary's total; the difference belongs to the time of the last report and after it, so that totals are exactly sysbench's own.
type record struct {
	out    *program.Recorder
	config *config

	from, to      int64 // of the last report, which waits for what follows
	events, bytes share
	begun         bool
}

// share is a sum that is counted in whole numbers.
type share struct {
	sum     float64 // of the reports
	counted uint64
}

// begin starts the first interval, when sysbench has started its threads.
func (r *record) begin(at int64) {
	if !r.begun {
		r.begun, r.from, r.to = true, at, at
		r.out.Begin(at)
	}
}

// report takes a line that arrived at a time.
func (r *record) report(line report, at int64) {
	r.count(r.events.take(), r.bytes.take())
	r.from, r.to = r.to, max(at, r.to+1)
	seconds := float64(r.to-r.from) / 1e9
	r.events.sum += line.rate * seconds
	r.bytes.sum += line.bytes * seconds
	if line.gauges != nil {
		if r.out.Gauges == nil {
			r.out.Gauges = line.gauges // of an interval that ended before
		}
		r.out.Gauge(interval.GaugeValues(line.gauges), r.to-1)
	}
	r.out.Release(r.from)
}

// take returns what is not counted yet.
func (s *share) take() uint64 {
	n := uint64(max(0, math.Round(s.sum)-float64(s.counted)))
	s.counted += n
	return n
}

// count spreads operations evenly over the time of the last report: sysbench does not say when in it they were.
func (r *record) count(events, bytes uint64) {
	period, whole := int64(r.out.Period()), r.to-r.from
	if whole <= 0 {
		r.out.Count(0, r.from, events, bytes)
		return
	}
	var doneEvents, doneBytes uint64
	for at := r.from; at < r.to; {
		next := min(r.to, (at/period+1)*period)
		part := float64(next-r.from) / float64(whole)
		e, b := uint64(float64(events)*part), uint64(float64(bytes)*part)
		if next == r.to {
			e, b = events, bytes
		}
		r.out.Count(0, at, e-doneEvents, b-doneBytes)
		doneEvents, doneBytes, at = e, b, next
	}
}

// end counts what the summary has beyond the reports, and adds the histogram.
func (r *record) end(s *summary, at int64) error {
	total := s.events
	bytes := s.bytes
	if c := r.config; !c.files.flushes {
		bytes = total * uint64(c.moved())
	}
	if total < r.events.counted {
		return &diag.Error{Code: "totals-differ", Exit: diag.ExitUndecided,
			Message: fmt.Sprintf("recorded %d operations from reports, and sysbench's summary has %d", r.events.counted, total)}
	}
	r.to = max(r.to, at)
	r.count(total-r.events.counted, bytes-min(bytes, r.bytes.counted))
	r.events.counted, r.bytes.counted = total, max(bytes, r.bytes.counted)
	if s.latencies != nil && total > 0 {
		r.out.Latencies(0, s.latencies)
	}
	if gauges := s.gauges(r.config); r.out.Gauges == nil && gauges != nil {
		r.out.Gauges = gauges
	}
	return nil
}

// rest counts the last report of a load that has no summary.
func (r *record) rest() { r.count(r.events.take(), r.bytes.take()) }

// gauges are those of a load that was too short for a report.
func (s *summary) gauges(c *config) interval.GaugeValues {
	switch {
	case c.test.silent:
		return nil
	case c.test.name == "fileio":
		return interval.GaugeValues{s.percentile, s.read, s.written, s.flushed}
	}
	return interval.GaugeValues{s.percentile}
}
