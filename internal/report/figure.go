package report

import (
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/result"
)

// valueText prints the value of one run.
func valueText(f *compare.Figure, run int) string {
	text := compare.Amount(f.Unit, f.Values[run])
	if f.IsAtLeast(run) {
		text = "≥ " + text
	}
	return text
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
