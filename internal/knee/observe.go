package knee

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
)

// ParseThreshold reads a threshold of response time: an upper bound of a statistic that a load as a whole has.
func ParseThreshold(text string) (scenario.Threshold, error) {
	x, err := scenario.ParseThreshold(text, "latency")
	if err != nil {
		return x, err
	}
	if _, ok := value(&result.Distribution{}, x.Statistic); !ok {
		return x, fmt.Errorf("threshold %q: %s is not a statistic of response time; use mean, median, p95, p99, p99.9 or max", text, x.Statistic)
	}
	if x.Operator != "<" && x.Operator != "<=" {
		return x, fmt.Errorf("threshold %q: write an upper bound, such as p99 < 1ms", text)
	}
	return x, nil
}

func value(d *result.Distribution, statistic string) (float64, bool) {
	v, ok := map[string]result.Number{"mean": d.Mean, "median": d.Median, "p95": d.P95, "p99": d.P99, "p99.9": d.P999, "max": d.Max}[statistic]
	return float64(v), ok
}

// Observe compares the response time of every load with a rate with a threshold; all must meet it. Operations that were never
// issued, failed or never completed count as slower than all others.
func Observe(s *result.Summary, x scenario.Threshold, factor float64) Observation {
	o := Observation{Factor: factor, Met: true, Value: result.Number(math.NaN())}
	due, from, to := uint64(0), int64(math.MaxInt64), int64(0)
	for i := range s.Loads {
		l := &s.Loads[i]
		if l.Prefill || l.Engine().Loop != interval.LoopOpen {
			continue
		}
		due += l.Due
		from, to = min(from, l.FromNanos), max(to, l.ToNanos)
		stats := analysis.OperationStats(l.Total.ResponseOrService(), l.NotIssued+l.WaitingAtEnd+l.Total.ErrorCount(), &stat.Histogram{})
		v, _ := value(&stats.Distribution, x.Statistic)
		bound := stats.AtLeast.Has(x.Statistic)
		switch {
		case math.IsNaN(v):
			o.Met, o.Few, o.Undecided = false, true, "too few operations for "+x.Statistic
			continue
		case bound && x.Holds(v):
			o.Met, o.Undecided = false, "operations never completed, so "+x.Statistic+" is not known"
		case !x.Holds(v):
			o.Met = false
		}
		if !(v <= float64(o.Value)) {
			o.Value, o.AtLeast = result.Number(v), bound
		}
	}
	if to > from {
		o.Rate = float64(due) / (float64(to-from) / 1e9)
	}
	switch {
	case due == 0:
		o.Met, o.Undecided = false, "no load with a rate ran"
	case s.Ended != result.EndedCompleted:
		o.Met, o.Undecided = false, "the run did not complete: "+s.Ended
	case o.Met && s.Validity == result.Invalid:
		o.Met, o.Undecided = false, s.ValidityReason
	case !o.Met && o.Undecided != "" && float64(o.Value) >= x.Value:
		o.Undecided = "" // another load missed it in any case
	}
	if !o.Met && o.Undecided == "" && s.Validity == result.Invalid {
		o.Invalid = s.ValidityReason
	}
	return o
}
