package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// RunsMin is the number of pinned runs from which their spread is known well enough to judge a single run.
	RunsMin = 3
	// clausesMax bounds how many differences one sentence names.
	clausesMax = 3
)

// Doubt returns why a run with these factors cannot be judged against the baseline, as a clause; "" if it can.
func (b *Baseline) Doubt(factors []Factor) string {
	switch {
	case b == nil:
		return "no baseline was pinned when the run started"
	case b.Missing != "":
		return b.Missing
	case len(b.Runs) == 0:
		return "the baseline has no run"
	}
	if other := differing(b.Runs[0].Factors, factors); len(other) > 0 {
		text := strings.Join(other[:min(len(other), clausesMax)], ", ")
		if more := len(other) - clausesMax; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		return "the run is not comparable with the baseline: " + text
	}
	if n := len(b.Runs); n < RunsMin {
		return fmt.Sprintf("a baseline of %s does not show how much runs vary; pin at least %d repetitions", textio.Plural(n, "run"), RunsMin)
	}
	return ""
}

// Number names a statistic of a result.
type Number struct {
	Result, Window, Series, Kind, Statistic string
	// MoreIsBetter: of a rate, not of a latency.
	MoreIsBetter bool
}

// Limits are the values of a later run that decide whether it is worse than the baseline by more than a tolerance: it passes at Pass
// or better, and fails beyond Fail. Between them, chance cannot be distinguished from change.
type Limits struct {
	Pass, Fail float64
	Runs       int // pinned

	mean, deviation, resolution float64 // of the logarithms of the pinned values
	limit                       float64 // the logarithm of the worst ratio that the tolerance allows
	confidence                  float64
}

// Limits returns the limits of a number, or why there are none. A single run is compared with the level of the pinned ones, by the
// prediction interval of Student's t on the logarithms: it assumes that the later run varies as the pinned ones do. Of several numbers
// judged together, each has an interval so wide that all of them hold in 95 % of runs.
func (b *Baseline) Limits(of Number, tolerance float64, together int) (l Limits, reason string) {
	var values []float64
	for i := range b.Runs {
		v, reason := b.Runs[i].value(of)
		if reason != "" {
			return l, fmt.Sprintf("%s of the baseline: pinned run %s %s", of.Statistic, b.Runs[i].Run, reason)
		}
		values = append(values, v)
	}
	l = Limits{Runs: len(values), limit: math.Log1p(tolerance), resolution: math.Log1p(stat.Trifle), confidence: 1 - stat.Level/float64(together)}
	if of.Kind != "" && of.Statistic != "mean" {
		l.resolution = math.Log1p(stat.BucketError)
	}
	l.mean, l.deviation = stat.LogMoments(values)
	half := l.half(len(values))
	if of.MoreIsBetter {
		l.limit, half = math.Log1p(-tolerance), -half
	}
	l.Pass, l.Fail = math.Exp(l.mean+l.limit-half), math.Exp(l.mean+l.limit+half)
	return l, ""
}

// half is half of the width of the interval of the difference between a run and so many pinned ones.
func (l *Limits) half(runs int) float64 {
	n := float64(runs)
	return l.resolution + stat.StudentQuantile((1+l.confidence)/2, n-1)*l.deviation*math.Sqrt(1+1/n)
}

// Change says how a value compares with the baseline: "+3.1 % (-4 to +10.8 %) against the baseline of 3 runs".
func (l *Limits) Change(value float64) string {
	half, shift := l.half(l.Runs), math.Log(value)-l.mean
	sign := func(v float64) string {
		switch {
		case v > 9:
			return "over 10 times"
		case v > 0:
			return "+" + unit.FormatPercent(v)
		}
		return unit.FormatPercent(v)
	}
	return fmt.Sprintf("%s (95 %%: %s to %s) against the baseline of %d runs", sign(math.Expm1(shift)), sign(math.Expm1(shift-half)),
		sign(math.Expm1(shift+half)), l.Runs)
}

// Needs says what would decide about a value between the limits.
func (l *Limits) Needs(value float64) string {
	distance := math.Abs(math.Log(value) - l.mean - l.limit)
	for runs := l.Runs + 1; runs <= RunsMax; runs++ {
		if l.half(runs) < distance {
			return fmt.Sprintf("about %d pinned runs of this spread would decide", runs)
		}
	}
	return "no number of pinned runs decides about a single one: repeat it, and compare the sets (bragg compare --base pinned --new LABEL)"
}

// value is the number of a pinned run, or why it has none.
func (r *Run) value(of Number) (v float64, reason string) {
	at := slices.IndexFunc(r.Results, func(one Result) bool { return one.Name == of.Result })
	if at < 0 {
		return 0, "does not have the result"
	}
	for _, s := range r.Results[at].Stats {
		if s.Window != of.Window || s.Series != of.Series || s.Kind != of.Kind {
			continue
		}
		v, _ := s.Distribution.Statistic(of.Statistic)
		switch {
		case s.AtLeast.Has(of.Statistic):
			return 0, "has only a lower bound of it"
		case !(v > 0) || math.IsInf(float64(v), 0):
			return 0, "has no such value"
		}
		return float64(v), ""
	}
	return 0, "does not have the series or window"
}

// Statistics are those that "no worse than baseline" without one judges, by the type of the result.
func Statistics(resultType string) []string {
	if resultType == "latency" {
		return []string{"median", "p99", "p99.9"}
	}
	return []string{"mean"}
}
