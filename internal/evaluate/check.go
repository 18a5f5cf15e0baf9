package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

// reportMetrics computes the metrics that a scenario is judged by: for each series over the whole result. Variability is
// the coefficient of variation in percent; AnyFail passes if every point is 0; NoScore requests no metric.
func reportMetrics(r scenario.Result, e *result.Evaluated) []result.Metric {
	var list []result.Metric
	for _, name := range r.ReportMetrics {
		for _, s := range e.Stats {
			// Latency is judged by service time, which is what X-Ray showed.
			if s.Window != "" || s.Kind == "response" {
				continue
			}
			m := result.Metric{Name: name, Unit: e.Unit}
			if len(e.Series) > 1 && s.Series != "all" {
				m.Series = s.Series
			}
			switch name {
			case "Variability":
				m.Value, m.Unit = s.CV*100, "%"
			case "Min", "Mean", "Median", "Max":
				v, _ := statistic(s, strings.ToLower(name))
				m.Value = result.Number(v)
			case "AnyFail":
				m.Value = max(s.Max, -s.Min)
				if s.Count > 0 {
					pass := s.Min == 0 && s.Max == 0
					m.Pass = &pass
				}
			default:
				continue
			}
			m.XRay = xrayMetric(name, s.Intervals)
			list = append(list, m)
		}
	}
	return list
}

func xrayMetric(name string, s *result.IntervalStats) *result.Number {
	if s == nil {
		return nil
	}
	v, ok := map[string]result.Number{"Variability": s.CV * 100, "Min": s.Min, "Mean": s.Mean, "Median": s.Median, "Max": s.Max}[name]
	if !ok {
		return nil
	}
	return &v
}

// checks compares a result with the thresholds of the scenario. Every series must meet a threshold; the reported
// value is the worst.
func (ev *evaluator) checks(r scenario.Result, e *result.Evaluated, s *result.Summary) []result.Check {
	var list []result.Check
	unsettled := ev.warmUps.unsettled(r, ev.events, s.Loads)
	for _, x := range r.Expect {
		c := result.Check{Text: x.Text, Window: x.Window, Event: x.Event, Unit: e.Unit, Value: result.Number(math.NaN())}
		if strings.TrimPrefix(x.Statistic, ofIntervals) == "cv" {
			c.Unit = ""
		}
		var values []measured
		if x.OfEvent() {
			list = append(list, costCheck(r, x, s.Impacts))
			continue
		}
		if x.Operator == scenario.NoWorse {
			list = append(list, ev.pinned.checks(c, x, e, loopsOf(r, e, s.Loads), unsettled)...)
			continue
		}
		switch x.Statistic {
		case timeToComplete:
			c.Unit = "s"
			values, c.Reason = ev.completion(r, x, s.Loads)
		case longestStall, secondsAtZero:
			c.Unit = "s"
			values, c.Reason = stalls(x, e)
		default:
			values, c.Reason = statistics(x, e, loopsOf(r, e, s.Loads))
		}
		for i := range values {
			if x.Statistic != timeToComplete {
				values[i].unknown = cmp.Or(values[i].unknown, unsettled)
			}
		}
		decide(&c, x, values)
		list = append(list, c)
	}
	return list
}

// measured is a value that is compared with a threshold.
type measured struct {
	value   float64
	atLeast string // why the real value is this or larger, "" if it is exact
	unknown string // why the real value may be smaller or larger
	hides   string // why it meets the threshold but does not decide
}

// decide compares the values of all series with a threshold. A missed value takes precedence, then an undecided one; the worst of
// these is shown.
func decide(c *result.Check, x scenario.Threshold, values []measured) {
	if len(values) == 0 {
		c.Reason = cmp.Or(c.Reason, "nothing was measured")
	}
	if c.Reason != "" {
		return
	}
	var decisive outcome
	for i, m := range values {
		o, reason := m.against(x)
		if i > 0 && (o > decisive || o == decisive && !(math.IsNaN(float64(c.Value)) || worse(m.value, float64(c.Value), x))) {
			continue
		}
		decisive = o
		c.Passed, c.Reason = o == outcomeMet, reason
		c.Value, c.AtLeast = result.Number(m.value), m.atLeast != "" && !math.IsNaN(m.value)
	}
}

// outcome is the result of comparing one value with a threshold. Of several values, the lowest decides.
type outcome int

const (
	outcomeMissed outcome = iota
	outcomeUndecided
	outcomeMet
)

// against compares m with a threshold, and returns why it does not decide.
func (m *measured) against(x scenario.Threshold) (o outcome, reason string) {
	met, known := compare(m.value, x.Operator, x.Value)
	switch {
	case !known:
		return outcomeUndecided, fmt.Sprintf("unknown comparison %q", x.Operator)
	case m.unknown != "":
		return outcomeUndecided, m.unknown
	case math.IsNaN(m.value):
		return outcomeUndecided, missingStatistic(x.Statistic)
	case m.atLeast != "" && !settled(met, x.Operator):
		return outcomeUndecided, m.atLeast
	case !met:
		return outcomeMissed, ""
	case m.hides != "":
		return outcomeUndecided, m.hides
	}
	return outcomeMet, ""
}

// settled reports whether the comparison of a lower bound holds for every larger value too.
func settled(met bool, operator string) bool {
	switch operator {
	case ">", ">=":
		return met
	case "<", "<=":
		return !met
	}
	return false
}

// statistics returns the requested statistic of every series. Latency means response time if it is recorded separately, because a
// threshold applies to the latency that a user of the storage sees. Series of intervals follow X-Ray, which only has service
// time.
func statistics(x scenario.Threshold, e *result.Evaluated, loops []interval.Loop) (values []measured, reason string) {
	if e.Missing != "" {
		return nil, e.Missing
	}
	if reason := averaged(x, e); reason != "" {
		return nil, reason
	}
	windows := false
	for _, s := range e.Stats {
		if s.Window != x.Window || s.Kind != kindOf(x, e, s.Series) {
			continue
		}
		windows = true
		v, ok := statistic(s, x.Statistic)
		if !ok {
			return nil, fmt.Sprintf("unknown statistic %q", x.Statistic)
		}
		m := measured{value: v, atLeast: lowerBound(s, x.Statistic, e.Type, loops), hides: cmp.Or(omission(s, x), border(s, x))}
		if x.Statistic == "cv" && (m.atLeast != "" || s.Unfinished > 0) {
			m.atLeast, m.unknown = "", "the coefficient of variation of latencies that are not all known is not known either"
		}
		if e.Type == "latency" && s.Untimed > 0 {
			m.atLeast, m.unknown = "", fmt.Sprintf("the latencies of %s operations are not known for this time", unit.FormatWhole(s.Untimed))
		}
		values = append(values, m)
	}
	if !windows {
		return nil, fmt.Sprintf("no data in window %q", x.Window)
	}
	return values, ""
}

// kindOf is the kind of latency of a series that a threshold refers to.
func kindOf(x scenario.Threshold, e *result.Evaluated, series string) string {
	kind := ""
	for _, s := range e.Stats {
		if s.Series == series && (s.Kind == "response" && !strings.HasPrefix(x.Statistic, ofIntervals) || kind == "") {
			kind = s.Kind
		}
	}
	return kind
}

// missingStatistic returns why a statistic of existing data is missing.
func missingStatistic(name string) string {
	if q := map[string]float64{"p95": 0.95, "p99": 0.99, "p99.9": 0.999}[strings.TrimPrefix(name, ofCorrected)]; q > 0 {
		return fmt.Sprintf("too few values for %s (needs %d)", name, stat.PercentileNeeds(q))
	}
	if name == timeToComplete {
		return "not every start of the workload completed"
	}
	return "no data for " + name
}

// timeToComplete is the statistic of whole starts.
const timeToComplete = "time_to_complete"

// ofIntervals is the prefix of the names of statistics of the means of intervals, ofCorrected of those corrected for coordinated
// omission.
const (
	ofIntervals = "interval_"
	ofCorrected = "corrected_"
)

func statistic(s result.Stats, name string) (float64, bool) {
	if plain, ok := strings.CutPrefix(name, ofCorrected); ok {
		c := s.Corrected
		if c == nil { // not a closed loop: the statistic counts from the intended start, or is a lower bound
			return statistic(s, plain)
		}
		v, ok := map[string]result.Number{"mean": c.Mean, "median": c.Median, "p95": c.P95, "p99": c.P99, "p99.9": c.P999}[plain]
		return float64(v), ok
	}
	if plain, ok := strings.CutPrefix(name, ofIntervals); ok {
		if i := s.Intervals; i != nil {
			s.Distribution = result.Distribution{Mean: i.Mean, Median: i.Median, Max: i.Max, Min: i.Min, CV: i.CV}
		} // otherwise the statistics are already those of the points
		name = plain
	}
	v, ok := s.Distribution.Statistic(name)
	return float64(v), ok
}

// completion returns the seconds to complete of every start of the loads of a result, NaN for one that should have completed and
// did not.
func (ev *evaluator) completion(r scenario.Result, x scenario.Threshold, loads []result.LoadSummary) (values []measured, reason string) {
	if x.Window != "" {
		return nil, "time_to_complete applies to whole workload starts, not to a window"
	}
	complete := false
	for _, l := range loads {
		about := l.Group == r.Group
		if name := r.Workload + r.Mask; name != "" {
			about = l.Workload == r.Workload || l.Workload == r.Mask
		}
		switch bound := ev.sizeBound[analysis.Start{Workload: l.Workload, Instance: l.Instance}]; {
		case !about || l.Prefill || !bound:
		case l.CompletionNanos > 0:
			values, complete = append(values, measured{value: float64(l.CompletionNanos) / 1e9}), true
		default:
			values = append(values, measured{value: math.NaN()})
		}
	}
	if !complete {
		return nil, "no workload of this result completed"
	}
	return values, ""
}

func compare(v float64, operator string, bound float64) (met, known bool) {
	switch operator {
	case "<":
		return v < bound, true
	case "<=":
		return v <= bound, true
	case ">":
		return v > bound, true
	case ">=":
		return v >= bound, true
	case "==":
		return v == bound, true
	case "!=":
		return v != bound, true
	}
	return false, false
}

// worse reports whether a is further on the wrong side than b.
func worse(a, b float64, x scenario.Threshold) bool {
	switch x.Operator {
	case ">", ">=":
		return a < b
	case "==":
		return math.Abs(a-x.Value) > math.Abs(b-x.Value)
	case "!=":
		return math.Abs(a-x.Value) < math.Abs(b-x.Value)
	}
	return a > b
}
