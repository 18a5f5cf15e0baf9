package document

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// Extent is the time range, in seconds, that the chart of r shows.
func (r *Result) Extent() (from, to float64) {
	from, to = float64(r.FromNanos)/1e9, float64(r.ToNanos)/1e9
	if to > from {
		return from, to
	}
	for _, s := range r.Series {
		if n := len(s.Points); n > 0 {
			to = max(to, s.Points[n-1].Seconds)
		}
	}
	return from, to
}

// Texts are the statistics as shown in reports for readers.
func Texts(d result.Distribution, unitName string) []string {
	out := make([]string, 0, 7)
	for _, s := range []struct {
		name  string
		value result.Number
	}{{"mean", d.Mean}, {"median", d.Median}, {"p95", d.P95}, {"p99", d.P99}, {"p999", d.P999}, {"max", d.Max}} {
		text := draw.Amount(float64(s.value), unitName)
		if d.AtLeast.Has(s.name) {
			text = "≥ " + text
		}
		out = append(out, text)
	}
	return append(out, unit.FormatPercent(float64(d.CV)))
}

// Heads are the columns of the table of statistics after the columns of text.
func (r *Result) Heads() []string {
	if r.stalls() {
		return append(slices.Clone(StatisticHeads), "longest stall")
	}
	return StatisticHeads
}

// Texts are the cells of a row in these columns.
func (r *Result) Texts(s Statistic) []string {
	texts := Texts(s.Distribution, r.Unit)
	switch {
	case !r.stalls():
	case s.Stall == nil && s.Count == 0:
		texts = append(texts, "–") // no load ran in this window
	default:
		texts = append(texts, StallText(s.Stall))
	}
	return texts
}

func (r *Result) stalls() bool {
	return slices.ContainsFunc(r.Rows, func(s Statistic) bool { return s.Stall != nil })
}

// StallText is the longest stall, and the seconds without a completion.
func StallText(s *result.Stall) string {
	switch {
	case s == nil:
		return "unknown"
	case s.LongestNanos == 0:
		return "< " + unit.FormatLatency(float64(s.ShortestNanos))
	case s.ZeroSeconds > 0:
		return fmt.Sprintf("%s (%d s at 0)", unit.FormatLatency(float64(s.LongestNanos)), s.ZeroSeconds)
	}
	return unit.FormatLatency(float64(s.LongestNanos))
}

// PercentText says how much of the capacity was used, if the result has both.
func (r *Result) PercentText() string {
	if r.Full <= 0 {
		return ""
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range r.Rows {
		if s := &r.Rows[i]; s.Window == "" && !math.IsNaN(float64(s.Mean)) {
			low, high = min(low, float64(s.Mean)/r.Full*100), max(high, float64(s.Mean)/r.Full*100)
		}
	}
	switch {
	case high < low:
		return ""
	case low == high:
		return fmt.Sprintf("%s of %s on average", draw.Quantity(high, "%"), draw.Quantity(r.Full, r.Unit))
	}
	return fmt.Sprintf("%s to %s of %s on average", draw.Quantity(low, "%"), draw.Quantity(high, "%"), draw.Quantity(r.Full, r.Unit))
}

// HeadingWithUnit includes the unit if the cells of the table below omit it.
func (r *Result) HeadingWithUnit() string {
	base, _ := draw.BaseUnit(r.Unit)
	if base == "" || draw.OwnsPrefix(base) || strings.Contains(r.Heading(), base) {
		return r.Heading()
	}
	return r.Heading() + " (" + base + ")"
}

// Outcome describes how a step ended; going means that its run has not ended.
func (s *Step) Outcome(going bool) string {
	switch {
	case !s.Started && going:
		return "not yet"
	case !s.Ended && going:
		return "running"
	case !s.Started:
		return "not run"
	case s.Error != "":
		return "failed: " + s.Error
	case !s.Ended:
		return "no end"
	case s.Simulated:
		return "done, simulated"
	}
	return "done"
}
