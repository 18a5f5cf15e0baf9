package evaluate

import (
	"fmt"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/unit"
)

// lowerBound returns why a statistic is only a lower bound, "" if it is exact. Statistics of intervals are of service time and
// of completed operations by definition.
func lowerBound(s result.Stats, statistic, kind string, loops []interval.Loop) string {
	if kind != "latency" || strings.HasPrefix(statistic, ofIntervals) {
		return ""
	}
	for _, l := range loops {
		switch {
		case l == interval.LoopPaced:
			return "the engine measures service time only and holds operations back to a rate, so response time is at least this"
		case !l.Known():
			return "the engine does not declare whether its loop is open, so response time is at least this"
		}
	}
	bounds := s.AtLeast
	if s.Corrected != nil && strings.HasPrefix(statistic, ofCorrected) {
		bounds = s.Corrected.AtLeast
	}
	if bounds.Has(strings.TrimPrefix(statistic, ofCorrected)) {
		return fmt.Sprintf("%s operations failed or never completed, so %s is at least this", unit.FormatWhole(s.Unfinished), statistic)
	}
	return ""
}

// averaged returns why a threshold cannot be judged by averages: a counter of time hides every single operation, and those of a result
// of latencies do not weigh periods by their operations either. Statistics of intervals are of averages by definition.
func averaged(x scenario.Threshold, e *result.Evaluated) string {
	mean := x.Statistic == "mean" || x.Statistic == "min" || x.Statistic == "cv"
	switch {
	case !e.Averages || strings.HasPrefix(x.Statistic, ofIntervals):
		return ""
	case e.Type == "latency":
		return fmt.Sprintf("its latencies are averages of device counters over some seconds each, not of single operations, so %s is unknown", x.Statistic)
	case mean:
		return ""
	}
	return fmt.Sprintf("its values are averages of counters over a period each, not latencies of single operations, so %s is unknown", x.Statistic)
}

// border returns why a window does not decide a threshold: operations of the second in which a step began or ended are in no
// window, and with them it would be missed.
func border(s result.Stats, x scenario.Threshold) string {
	if s.WithBorders == nil {
		return ""
	}
	with := s
	with.Distribution, with.Corrected, with.Intervals = *s.WithBorders, nil, nil
	v, known := statistic(with, x.Statistic)
	met, _ := compare(v, x.Operator, x.Value)
	bound := with.AtLeast.Has(x.Statistic)
	switch {
	case !known || strings.HasPrefix(x.Statistic, ofIntervals) || math.IsNaN(v):
		return ""
	case !met:
		return fmt.Sprintf("with the second in which a step began or ended, %s is %s", x.Statistic, unit.FormatLatency(v))
	case bound && !settled(met, x.Operator):
		return fmt.Sprintf("operations failed or never completed in the second in which a step began or ended, and with them %s is at least %s",
			x.Statistic, unit.FormatLatency(v))
	}
	return ""
}

// omission returns why a percentile of a closed loop does not decide an upper threshold: while operations hung, the loop issued
// none, and with the omitted ones the percentile would miss the threshold.
func omission(s result.Stats, x scenario.Threshold) string {
	upper := x.Operator == "<" || x.Operator == "<="
	corrected, known := statistic(s, ofCorrected+x.Statistic)
	met, _ := compare(corrected, x.Operator, x.Value)
	if s.Corrected == nil || !known || !upper || met || math.IsNaN(corrected) {
		return ""
	}
	if v, _ := statistic(s, x.Statistic); !analysis.Hung(v, corrected) {
		return ""
	}
	return fmt.Sprintf("a closed loop issues nothing while operations hang; corrected for that, %s is %s", x.Statistic, unit.FormatLatency(corrected))
}

// loopsOf lists the loops of the loads of a result that ran in its time range; "" for one whose engine is unknown.
func loopsOf(r scenario.Result, e *result.Evaluated, loads []result.LoadSummary) []interval.Loop {
	keep, _ := choose(r)
	var loops []interval.Loop
	for _, l := range loads {
		if !keep(l.Workload, l.Group, l.Prefill) || l.ToNanos <= e.FromNanos || l.FromNanos >= e.ToNanos {
			continue
		}
		if len(l.Engines) == 0 {
			loops = append(loops, "")
		}
		for _, e := range l.Engines {
			loops = append(loops, e.Loop)
		}
	}
	return loops
}
