// Package steady judges whether a load is steady: whether a longer measurement would have given the same numbers. It looks at several
// series of a load over all its VMs, by two methods: the rule of SNIA, which compares five rounds, and changes of level, which find
// what the means of rounds hide, such as a square wave. It knows no run and no scenario.
//
//	intervals of all VMs ──Course.Add──▶ Course ──Series──▶ IOPS, median and p99 of response time, second by second
//	series ──Judge──▶ Verdict: steady, not steady and why, or too short to say
//	series ──WarmUp──▶ the same for what follows the warm-up, which it finds
//
//	course.go   series from intervals
//	segment.go  levels of a series, and how its noise correlates
package steady

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

// The rule of SNIA's Solid State Storage Performance Test Specification: in a window of five rounds, the values of the rounds lie
// within 20 % of their mean, and the ends of the line through them within 10 %.
const (
	Rounds     = 5
	rangeLimit = 0.20
	slopeLimit = 0.10
	// levelShare of the time may lie outside the range at either end: an interruption is not a change of level.
	levelShare = 0.05
	// scatterLimit is a coefficient of variation of a rate: changes too fast for rounds and levels.
	scatterLimit = 0.30
	// latencyFactor multiplies the limits for latencies: their percentiles differ more from second to second than rates do.
	latencyFactor = 2.5
	// ValuesMin is how many values a judgement needs: four in each round.
	ValuesMin = 4 * Rounds
	// Chance alone spreads the means of five rounds by more than rangeSure standard errors, or gives their line an excursion of more
	// than slopeSure, in less than one of a hundred series.
	rangeSure = 4.6
	slopeSure = 4.7
	// noiseTolerated is how many times the limit a latency may exceed by noise alone: percentiles of seconds scatter widely, and an
	// uncertain excess of a rate only says that there are too few values.
	noiseTolerated = 2
	// stepSlope is the excursion of the line through a step, in heights of the step; that of a drift is 1.1 times its levels.
	stepSlope = 1.3
)

// Series is one quantity over time: values of equal length, NaN where it is unknown.
type Series struct {
	Name    string // "IOPS"
	Latency bool   // its noise is a factor, and it may change more
	Values  []float64
}

func (s *Series) tolerance() float64 {
	if s.Latency {
		return latencyFactor
	}
	return 1
}

// State is the outcome of a judgement.
type State int

// The states.
const (
	TooShort State = iota // too few values, or too much noise for so few
	Unsteady
	Steady
)

// Criterion is what a series has to meet.
type Criterion string

// The criteria.
const (
	Slope   Criterion = "slope"   // the line through the five rounds
	Range   Criterion = "range"   // the largest and the smallest round
	Levels  Criterion = "levels"  // levels between changes
	Scatter Criterion = "scatter" // coefficient of variation
)

// Reason is one criterion that one series does not meet.
type Reason struct {
	Series       string
	Criterion    Criterion
	Found, Limit float64 // as shares of the mean
	Fell         bool    // of a slope
	// Sure: noise alone does not explain it.
	Sure    bool
	Latency bool
}

// timesFrom is the share of the mean from which on a difference is a factor.
const timesFrom = 10

// Degree is how many times the limit was found.
func (r *Reason) Degree() float64 { return r.Found / r.Limit }

// String is a clause about a load: "its IOPS rose by 34 %".
func (r *Reason) String() string {
	found := unit.FormatWholePercent(r.Found)
	switch r.Criterion {
	case Slope:
		verb := "rose"
		if r.Fell {
			verb = "fell"
			if r.Found > 1 { // as only a line does
				found += " of its mean"
			}
		}
		return fmt.Sprintf("its %s %s by %s", r.Series, verb, found)
	case Range:
		return fmt.Sprintf("the five rounds of its %s differ by %s", r.Series, r.ofMean())
	case Levels:
		return fmt.Sprintf("the levels of its %s differ by %s", r.Series, r.ofMean())
	}
	return fmt.Sprintf("its %s scatter by %s around their mean", r.Series, found)
}

// ofMean is a difference in words: "34 % of the mean", "263 times the mean".
func (r *Reason) ofMean() string {
	if r.Found >= timesFrom {
		return fmt.Sprintf("%.0f times the mean", r.Found)
	}
	return unit.FormatWholePercent(r.Found) + " of the mean"
}

// Bound is the limit beside it: "(limit 10 %)".
func (r *Reason) Bound() string { return "(limit " + unit.FormatWholePercent(r.Limit) + ")" }

// Verdict is the outcome for all series of a load.
type Verdict struct {
	State State
	// WarmUp is how many values precede those that were judged: a warm-up, if the load is steady after them.
	WarmUp int
	// Reasons are why the load is not steady, or why that is unknown; the worst first.
	Reasons []Reason
}

// Why is one clause on why the load is not steady, or why that is unknown.
func (v *Verdict) Why() string {
	switch {
	case v.State == Steady:
		return ""
	case v.State == TooShort && len(v.Reasons) > 0:
		return "too short to say: " + v.Reasons[0].String() + " " + v.Reasons[0].Bound() + ", within its noise"
	case v.State == TooShort:
		return "too short to say"
	}
	return v.Reasons[0].String() + " " + v.Reasons[0].Bound()
}

// Judge judges all values of the series. A load is steady if every series that is known meets every criterion.
func Judge(list ...Series) Verdict {
	var out Verdict
	known := 0
	for i := range list {
		c := newCurve(&list[i])
		if len(c.values) < ValuesMin {
			continue
		}
		known++
		out.Reasons = append(out.Reasons, c.judge()...)
	}
	slices.SortStableFunc(out.Reasons, func(a, b Reason) int {
		return cmp.Or(-compareBools(a.Sure, b.Sure), cmp.Compare(b.Degree(), a.Degree()))
	})
	switch {
	case known == 0:
	case len(out.Reasons) == 0:
		out.State = Steady
	case out.Reasons[0].Sure:
		out.State = Unsteady
	}
	return out
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// judge returns the criteria that the curve does not meet.
func (c *curve) judge() []Reason {
	var list []Reason
	reason := func(by Criterion, found, limit float64, sure bool) {
		if limit *= c.tolerance(); found > limit && (sure || !c.Latency || found > noiseTolerated*limit) {
			list = append(list, Reason{Series: c.Name, Criterion: by, Found: found, Limit: limit, Sure: sure, Latency: c.Latency})
		}
	}
	rounds := c.rounds()
	spread := c.share(slices.Min(rounds), slices.Max(rounds))
	slope := 0.0
	for i, v := range rounds {
		slope += (float64(i) - (Rounds-1)/2.0) * v / 10 // the squares of −2 to 2 add up to 10
	}
	excursion := slope * Rounds // from the begin of the first round to the end of the last
	deviation := c.roundError()
	reason(Slope, c.share(-math.Abs(excursion)/2, math.Abs(excursion)/2), slopeLimit, math.Abs(excursion) > slopeSure*deviation)
	if len(list) > 0 {
		list[0].Fell = slope < 0
	}
	reason(Range, spread, rangeLimit, slices.Max(rounds)-slices.Min(rounds) > rangeSure*deviation)
	low, high := c.spanned()
	reason(Levels, c.share(low, high), rangeLimit, true)
	if !c.Latency {
		reason(Scatter, c.scatter(), scatterLimit, true)
	}
	// A step has a slope too, steeper than its levels are apart.
	apart := c.share(low, high)
	return slices.DeleteFunc(list, func(r Reason) bool {
		return r.Criterion == Slope && apart > rangeLimit*c.tolerance() && r.Found > stepSlope*apart
	})
}

// rounds are the means of five parts of equal length.
func (c *curve) rounds() []float64 {
	n := len(c.values)
	list := make([]float64, Rounds)
	for i := range list {
		list[i] = stat.Mean(c.values[i*n/Rounds : (i+1)*n/Rounds])
	}
	return list
}

// roundError is the standard error of the mean of one round, from the noise around the levels and how it correlates.
func (c *curve) roundError() float64 {
	noise := make([]float64, len(c.values))
	for i, v := range c.values {
		noise[i] = v - c.fit[i]
	}
	deviation, _ := stat.BootstrapError(noise)
	// Of few values the levels follow the noise; differences of neighbors still show it.
	return math.Sqrt(Rounds * max(deviation*deviation, longRun(c.values)/float64(len(noise))))
}

// scatter is the coefficient of variation of a rate, without outliers.
func (c *curve) scatter() float64 {
	mean, squares := stat.Mean(c.values), 0.0
	for _, v := range c.values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(c.values)))
}

// warmUpNoticed is how far a level must be from that of the second half to be part of the warm-up, as a share of the mean.
const warmUpNoticed = 0.05

// endsTried bounds how many ends of the warm-up are tried, roughly.
const endsTried = 16

// WarmUp finds the end of the warm-up and judges the values after it. The warm-up ends with the last of the first levels that differ
// from that of the second half; if the values after it are not steady, at the first later change of level after which they are. It is
// at most half of all: a load that settles later than that was not measured for long enough. Without an end, the verdict is that of all
// values, or of those after the first end for which they are too few to say.
func WarmUp(list ...Series) Verdict {
	whole := Judge(list...)
	n := 0
	var ends []int
	first := 0
	for i := range list {
		c := newCurve(&list[i])
		if len(c.values) < 2*ValuesMin {
			continue
		}
		n = max(n, len(list[i].Values))
		apart := warmUpNoticed * c.tolerance()
		if whole.State == Steady {
			apart *= 2 // less would hardly change any number
		}
		settled, changes := c.settles(apart)
		first, ends = max(first, settled), append(ends, changes...)
	}
	if first == 0 && whole.State == Steady {
		return whole
	}
	ends = slices.DeleteFunc(append(ends, first), func(end int) bool { return end < first || end == 0 || end > n/2 })
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i := 0; i < len(ends); i += 1 + len(ends)/endsTried {
		end := ends[i]
		after := make([]Series, len(list))
		for i, s := range list {
			after[i] = s
			after[i].Values = s.Values[min(end, len(s.Values)):]
		}
		v := Judge(after...)
		v.WarmUp = end
		switch {
		case v.State == Steady:
			return v
		case v.State == TooShort && whole.State != TooShort:
			whole = v
		}
	}
	return whole
}
