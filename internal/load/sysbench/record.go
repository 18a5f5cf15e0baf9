package sysbench

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// record turns reports and the summary into intervals. Reports have rates with two digits. What they add up to differs a little from the
// summary's total; the difference belongs to the time of the last report and after it, so that totals are exactly sysbench's own.
type record struct {
	out    *program.Recorder
	config *config

	from, to              int64 // of the last report, which waits for what follows
	events, bytes, failed share
	begun, reported       bool
	server                interval.GaugeValues // of the server of a database, the last ones
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
	r.count(r.take())
	r.from, r.to = r.to, max(at, r.to+1)
	seconds := float64(r.to-r.from) / 1e9
	r.events.sum += line.rate * seconds
	r.bytes.sum += line.bytes * seconds
	r.failed.sum += line.failed * seconds
	if line.gauges != nil {
		values := append(interval.GaugeValues(line.gauges), r.server...)
		if !r.reported {
			r.reported, r.out.Gauges = true, values // of an interval that ended before
		}
		r.out.Gauge(values, r.to-1)
	}
	r.out.Release(r.from)
}

// take returns what is not counted yet.
func (s *share) take() uint64 {
	n := uint64(max(0, math.Round(s.sum)-float64(s.counted)))
	s.counted += n
	return n
}

// amount is what is counted of a time.
type amount struct{ events, bytes, failed uint64 }

func (r *record) take() amount { return amount{r.events.take(), r.bytes.take(), r.failed.take()} }

// part is a share of an amount.
func (a amount) part(of float64) amount {
	scale := func(n uint64) uint64 { return uint64(float64(n) * of) }
	return amount{scale(a.events), scale(a.bytes), scale(a.failed)}
}

// failedClass is that of errors which sysbench ignores: it begins the transaction again.
const failedClass = "ignored"

func (r *record) add(at int64, from, to amount) {
	r.out.Count(0, at, to.events-from.events, to.bytes-from.bytes)
	r.out.CountFailed(0, at, failedClass, to.failed-from.failed)
}

// count spreads an amount evenly over the time of the last report: sysbench does not say when in it operations were.
func (r *record) count(all amount) {
	period, whole := int64(r.out.Period()), r.to-r.from
	if whole <= 0 {
		r.add(r.from, amount{}, all)
		return
	}
	var done amount
	for at := r.from; at < r.to; {
		next := min(r.to, (at/period+1)*period)
		until := all.part(float64(next-r.from) / float64(whole))
		if next == r.to {
			until = all
		}
		r.add(at, done, until)
		done, at = until, next
	}
}

// end counts what the summary has beyond the reports, and adds the histogram.
func (r *record) end(s *summary, at int64) error {
	total := s.events
	bytes := s.bytes
	if c := r.config; !c.files.flushes {
		bytes = total * uint64(c.moved())
	}
	var failed uint64
	if s.sql != nil {
		failed = s.sql.ignored
	}
	if total < r.events.counted || failed < r.failed.counted || s.sql != nil && s.sql.transactions != total {
		return program.TotalsDiffer("recorded %d operations and %d errors from reports, and sysbench's summary has %d and %d",
			r.events.counted, r.failed.counted, total, failed)
	}
	r.to = max(r.to, at)
	r.count(amount{total - r.events.counted, bytes - min(bytes, r.bytes.counted), failed - r.failed.counted})
	r.events.counted, r.bytes.counted, r.failed.counted = total, max(bytes, r.bytes.counted), failed
	if s.latencies != nil && total > 0 {
		r.out.Latencies(0, s.latencies)
	}
	if gauges := s.gauges(r.config); !r.reported && gauges != nil {
		r.out.Gauges = append(gauges, r.server...)
	}
	return nil
}

// rest counts the last report of a load that has no summary.
func (r *record) rest() { r.count(r.take()) }

// gauges are those of a load that was too short for a report.
func (s *summary) gauges(c *config) interval.GaugeValues {
	switch {
	case c.test.silent:
		return nil
	case s.sql != nil:
		values := interval.GaugeValues{s.percentile}
		for _, n := range []uint64{s.sql.read, s.sql.written, s.sql.other, s.sql.ignored, s.sql.reconnects} {
			values = append(values, float64(n)/max(s.seconds, 1e-4))
		}
		return values
	case c.test.name == "fileio":
		return interval.GaugeValues{s.percentile, s.read, s.written, s.flushed}
	}
	return interval.GaugeValues{s.percentile}
}
