package sysbench

import (
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// Parsed is one report line.
type Parsed struct {
	Rate, Bytes, Failed float64
	Gauges              []float64
}

// ParseReport reads one line of the test of a workload.
func ParseReport(w load.Workload, line string) (Parsed, bool, error) {
	c, err := parse(&w)
	if err != nil {
		return Parsed{}, false, err
	}
	r, is := c.parseReport(line)
	return Parsed{r.rate, r.bytes, r.failed, r.gauges}, is, nil
}

// Summary is what sysbench prints at its end.
type Summary struct {
	Events, Bytes, Unfinished uint64
	Latencies                 *stat.Histogram
	// Of a database.
	Read, Written, Other, Transactions, Ignored uint64
}

// ParseSummary reads sysbench's output.
func ParseSummary(text string) (Summary, error) {
	s, err := parseSummary(text)
	all := Summary{Events: s.events, Bytes: s.bytes, Unfinished: s.unfinished, Latencies: s.latencies}
	if q := s.sql; q != nil {
		all.Read, all.Written, all.Other, all.Transactions, all.Ignored = q.read, q.written, q.other, q.transactions, q.ignored
	}
	return all, err
}
