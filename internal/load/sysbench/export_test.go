package sysbench

import (
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// Parsed is one report line.
type Parsed struct {
	Rate, Bytes float64
	Gauges      []float64
}

// ParseReport reads one line of the test of a workload.
func ParseReport(w load.Workload, line string) (Parsed, bool, error) {
	c, err := parse(&w)
	if err != nil {
		return Parsed{}, false, err
	}
	r, is := c.parseReport(line)
	return Parsed{r.rate, r.bytes, r.gauges}, is, nil
}

// Summary is what sysbench prints at its end.
type Summary struct {
	Events, Bytes, Unfinished uint64
	Latencies                 *stat.Histogram
}

// ParseSummary reads sysbench's output.
func ParseSummary(text string) (Summary, error) {
	s, err := parseSummary(text)
	return Summary{s.events, s.bytes, s.unfinished, s.latencies}, err
}
