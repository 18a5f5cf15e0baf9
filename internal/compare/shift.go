package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

// Shift is one number of all runs that may be 0, such as the dip of an event, and is therefore compared by difference.
type Shift struct {
	Name  string `json:"name"`  // as in thresholds: "dip", "recovery"
	Title string `json:"title"` // "back to 5 %"
	Unit  string `json:"unit"`
	// Values has one number per run; null if it is not known, for which Reasons has why.
	Values  []result.Number `json:"values"`
	Reasons []string        `json:"reasons"`
	// The number of a run is between Lows and Highs. They are equal if it is exact; a high of null is not bounded.
	Lows  []result.Number `json:"lows"`
	Highs []result.Number `json:"highs"`
	// Differences are against the first run; null unless both are exact.
	Differences []result.Number `json:"differences"`
	// Of two sets: the difference of the means, B less A, and its 95 % interval for this number alone; null for single runs, or where
	// bounds leave it open.
	Difference result.Number `json:"difference"`
	Low        result.Number `json:"low"`
	High       result.Number `json:"high"`
	Verdict    Verdict       `json:"verdict"` // "" for single runs, and if the number cannot be compared
	Reason     string        `json:"reason"`  // of ""

	estimates  bool    // Lows and Highs are intervals of fits, which the spread from run to run contains
	resolution float64 // the difference that shows nothing
}

// bounded is a number of one run between two bounds.
type bounded struct {
	value, low, high float64
	reason           string // why it is not known
}

func exactly(v float64) bounded { return bounded{value: v, low: v, high: v} }

func notKnown(reason string) bounded {
	return bounded{value: math.NaN(), low: math.NaN(), high: math.NaN(), reason: reason}
}

// fill takes the numbers of all runs; false if none has one.
func (s *Shift) fill(runs []bounded) bool {
	s.Difference, s.Low, s.High = unknown, unknown, unknown
	for _, b := range runs {
		s.Values, s.Reasons = append(s.Values, result.Number(b.value)), append(s.Reasons, b.reason)
		s.Lows, s.Highs = append(s.Lows, result.Number(b.low)), append(s.Highs, result.Number(b.high))
		difference := unknown
		if first := &runs[0]; s.estimates || first.low == first.high && b.low == b.high {
			difference = result.Number(b.value - first.value)
		}
		s.Differences = append(s.Differences, difference)
	}
	return slices.ContainsFunc(runs, func(b bounded) bool { return !math.IsNaN(b.value) })
}

// missing returns why a number has no difference between two sets, of which the first has base runs; "" if it has one.
func (s *Shift) missing(base int) string {
	for i, v := range s.Values {
		if math.IsNaN(float64(v)) {
			return fmt.Sprintf("run %s: %s", setName(i, base), s.Reasons[i])
		}
	}
	return ""
}

// interval returns the difference of two sets and its interval, whatever the numbers are between their bounds: bounds from below are
// a sample whose mean is at most the true one, and those from above at least. An end is infinite where a number has no bound. It is
// false for sets with fewer than two runs.
func (s *Shift) interval(base int, confidence float64) (value, low, high float64, several bool) {
	lows, highs, values := floats(s.Lows), floats(s.Highs), floats(s.Values)
	if s.estimates {
		lows, highs = values, values
	}
	both, several := stat.ShiftOf(values[:base], values[base:], s.resolution)
	if !several {
		return 0, 0, 0, false
	}
	low, high = math.Inf(-1), math.Inf(1)
	if least, ok := stat.ShiftOf(highs[:base], lows[base:], s.resolution); ok {
		low, _ = least.Interval(confidence)
	}
	if most, ok := stat.ShiftOf(lows[:base], highs[base:], s.resolution); ok {
		_, high = most.Interval(confidence)
	}
	return both.Value, low, high, true
}

// Bounded reports whether the number of a run is only known to be between two bounds.
func (s *Shift) Bounded(run int) bool { return !s.estimates && s.Lows[run] != s.Highs[run] }

// bound returns the first run that has only a bound, -1 if all are exact.
func (s *Shift) bound() int {
	for i := range s.Lows {
		if s.Bounded(i) {
			return i
		}
	}
	return -1
}

// testShifts compares numbers of two sets, together: the intervals that decide are as wide as their number asks for (Bonferroni).
func testShifts(shifts []*Shift, base, others int) {
	for _, s := range shifts {
		if s.Reason = s.missing(base); s.Reason != "" {
			continue
		}
		if min(base, others) < 2 {
			s.Verdict, s.Reason = TooFew, "a single run does not show how much it varies from run to run"
			continue
		}
		value, low, high, _ := s.interval(base, stat.Confidence)
		s.Low, s.High = result.Number(low), result.Number(high)
		if s.bound() < 0 {
			s.Difference = result.Number(value)
		}
		_, low, high, _ = s.interval(base, 1-stat.Level/float64(len(shifts)))
		switch at := s.bound(); {
		case low > 0 || high < 0:
			s.Verdict = Different
		case math.IsInf(low, 0) || math.IsInf(high, 0):
			s.Reason = fmt.Sprintf("it is only a bound in run %s", setName(at, base))
		default:
			s.Verdict = NoneSeen
		}
	}
}

// ValueText prints the number of one run.
func (s *Shift) ValueText(run int) string {
	value, low, high := s.Values[run], float64(s.Lows[run]), float64(s.Highs[run])
	text := s.amount(value)
	switch {
	case math.IsNaN(float64(value)):
		return "unknown"
	case s.estimates && (math.IsNaN(low) || math.IsNaN(high)):
		return text
	case s.estimates:
		return fmt.Sprintf("%s (%s to %s)", text, s.amount(s.Lows[run]), s.amount(s.Highs[run]))
	}
	return s.SpanText(run, run+1)
}

// SpanText prints the mean of some runs, or if a number is only bounded, the bounds of all of them.
func (s *Shift) SpanText(from, to int) string {
	mean, exact := result.Number(0), true
	for run := from; run < to; run++ {
		mean += s.Values[run] / result.Number(to-from)
		exact = exact && !s.Bounded(run)
	}
	low, high := slices.Min(s.Lows[from:to]), slices.Max(s.Highs[from:to])
	switch {
	case math.IsNaN(float64(mean)):
		return "unknown"
	case exact:
		return s.amount(mean)
	case math.IsInf(float64(high), 1):
		return "≥ " + s.amount(low)
	case mean == 0:
		return "none seen (up to " + s.amount(high) + ")"
	}
	return s.amount(low) + " to " + s.amount(high)
}

// amount prints a number with its unit, unless the title has it.
func (s *Shift) amount(v result.Number) string {
	if s.Unit == "ratio" || s.Unit == "operations" {
		return Amount(s.Unit, v)
	}
	return draw.Quantity(float64(v), s.Unit)
}

// Amount prints a number as in the report of its run.
func Amount(unitName string, v result.Number) string {
	if unitName == "ratio" {
		return unit.FormatPercent(float64(v))
	}
	return draw.Amount(float64(v), unitName)
}

// SignedAmount prints a difference with its sign; one of percentages is in percentage points.
func SignedAmount(unitName string, v result.Number) string {
	text := Amount(unitName, v)
	if unitName == "ratio" && text != "–" {
		text = strings.TrimSuffix(text, "%") + "pp"
	}
	if v == 0 {
		return text
	}
	return draw.Signed(text)
}
