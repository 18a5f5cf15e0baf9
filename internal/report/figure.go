package report

import (
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// figureText prints a value of f as in the report of its run.
func figureText(f *compare.Figure, v result.Number) string {
	if f.Unit == "ratio" {
		return unit.FormatPercent(float64(v))
	}
	return draw.Amount(float64(v), f.Unit)
}

// valueText prints the value of one run.
func valueText(f *compare.Figure, run int) string {
	text := figureText(f, f.Values[run])
	if f.IsAtLeast(run) {
		text = "≥ " + text
	}
	return text
}

// differenceText prints a difference with its sign; a difference of percentages is in percentage points.
func differenceText(f *compare.Figure, v result.Number) string {
	text := figureText(f, v)
	if f.Unit == "ratio" && text != "–" {
		text = text[:len(text)-1] + "pp"
	}
	return draw.Signed(text)
}

// ratioText prints a ratio with three decimals, so that a difference of one per cent shows.
func ratioText(v result.Number) string {
	f := float64(v)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "–"
	case math.Abs(f) >= 100:
		return "×" + strconv.FormatFloat(f, 'f', 0, 64)
	}
	return "×" + strconv.FormatFloat(f, 'f', 3, 64)
}
