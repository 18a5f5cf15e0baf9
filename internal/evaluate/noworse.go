package evaluate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// pinned is the baseline that the bundle holds, and why the run cannot be judged against it.
type pinned struct {
	*baseline.Baseline
	doubt string
}

func pinnedOf(ev *evaluator) *pinned {
	b, err := baseline.Attached(ev.in.Bundle)
	if err != nil { // the scenario expects one, so the session attached one, or why there is none
		b = nil
	}
	return &pinned{b, b.Doubt(baseline.FactorsOf(&ev.manifest, ev.plan))}
}

// checks judges a threshold against the pinned baseline: a check for each statistic, whose worst series counts. unsettled says why the load
// decides nothing.
func (b *pinned) checks(c result.Check, x scenario.Threshold, e *result.Evaluated, loops []interval.Loop, unsettled string) []result.Check {
	names := []string{x.Statistic}
	if x.Statistic == "" {
		names = baseline.Statistics(e.Type)
	}
	var list []result.Check
	for _, name := range names {
		one, of := c, x
		one.Reason = cmp.Or(b.doubt, e.Missing, unsettled)
		if of.Statistic = name; x.Statistic == "" {
			one.Text = name + " " + c.Text
		}
		if one.Reason == "" {
			one = (&comparing{b, of, e, loops, len(names)}).judge(one)
		} else if values, _ := statistics(of, e, loops); len(values) == 1 { // to be seen, though it is not judged
			one.Value, one.AtLeast = result.Number(values[0].value), values[0].atLeast != ""
		}
		list = append(list, one)
	}
	return list
}

// comparing is one statistic of a result that is compared with the baseline.
type comparing struct {
	*pinned
	x        scenario.Threshold
	e        *result.Evaluated
	loops    []interval.Loop
	together int // numbers that are judged together
}

// judge compares every series with the baseline. One that is worse takes precedence, then an undecided one.
func (of *comparing) judge(c result.Check) result.Check {
	var rows []result.Stats
	for _, s := range of.e.Stats {
		if s.Window == of.x.Window && s.Kind == kindOf(of.x, of.e, s.Series) {
			rows = append(rows, s)
		}
	}
	if len(rows) == 0 {
		c.Reason = fmt.Sprintf("no data in window %q", of.x.Window)
		return c
	}
	of.together *= len(rows)
	worst := outcomeMet
	for i, s := range rows {
		if one, o := of.row(c, s); i == 0 || o < worst {
			c, worst = one, o
		}
	}
	return c
}

// row compares one series with two ordinary thresholds: the value up to which it is certainly no worse than the tolerance allows, and
// the one beyond which it certainly is.
func (of *comparing) row(c result.Check, s result.Stats) (result.Check, outcome) {
	x, rate := of.x, of.e.Type != "latency"
	limits, reason := of.Limits(baseline.Number{Result: of.e.Name, Window: s.Window, Series: s.Series, Kind: s.Kind, Statistic: x.Statistic,
		MoreIsBetter: rate}, x.Value, of.together)
	if reason != "" {
		c.Reason = reason
		return c, outcomeUndecided
	}
	only := *of.e
	only.Stats = []result.Stats{s}
	if x.Operator = "<="; rate {
		x.Operator = ">="
	}
	against := func(bound float64) outcome {
		x.Value = bound
		values, reason := statistics(x, &only, of.loops)
		c.Passed, c.Reason = false, reason
		decide(&c, x, values)
		switch {
		case c.Passed:
			return outcomeMet
		case c.Reason != "":
			return outcomeUndecided
		}
		return outcomeMissed
	}
	if against(limits.Fail) == outcomeMissed {
		return changed(c, &limits), outcomeMissed
	}
	o := against(limits.Pass)
	if o == outcomeMissed {
		o, c.Reason = outcomeUndecided, "the tolerance lies within the interval; "+limits.Needs(float64(c.Value))
	}
	return changed(c, &limits), o
}

// changed says how the value compares with the baseline.
func changed(c result.Check, limits *baseline.Limits) result.Check {
	if v := float64(c.Value); v > 0 && !math.IsInf(v, 0) {
		c.Change = limits.Change(v)
	}
	return c
}
