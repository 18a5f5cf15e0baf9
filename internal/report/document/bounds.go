package document

import (
	"fmt"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// boundsWide is how far a bound lies from its percentile, relative to it, before a reader needs to see it.
const boundsWide = 0.1

// BoundsTexts are sentences on the uncertainty of the percentiles of a result: those with wide bounds row by row, and how close all
// others are.
func (r *Result) BoundsTexts() []string {
	var list []string
	narrow := 0.0
	for i := range r.Rows {
		s := &r.Rows[i]
		if s.Bounds == nil {
			continue
		}
		var wide []string
		for _, p := range []struct {
			name   string
			value  result.Number
			bounds [2]result.Number
		}{{"median", s.Median, s.Bounds.Median}, {"p95", s.P95, s.Bounds.P95}, {"p99", s.P99, s.Bounds.P99}, {"p99.9", s.P999, s.Bounds.P999}} {
			low, high, v := float64(p.bounds[0]), float64(p.bounds[1]), float64(p.value)
			if math.IsNaN(v) || math.IsNaN(low) || s.AtLeast.Has(p.name) {
				continue
			}
			off := max(1-low/v, high/v-1)
			switch {
			case math.IsNaN(high) || math.IsInf(high, 1):
				wide = append(wide, fmt.Sprintf("%s %s, at least %s", p.name, draw.Quantity(v, r.Unit), draw.Quantity(low, r.Unit)))
			case off > boundsWide:
				wide = append(wide, fmt.Sprintf("%s %s, %s to %s", p.name, draw.Quantity(v, r.Unit), draw.Quantity(low, r.Unit), draw.Quantity(high, r.Unit)))
			default:
				narrow = max(narrow, off)
			}
		}
		if len(wide) > 0 {
			list = append(list, fmt.Sprintf("%s, %s: %s.", WindowLabel(s.Window), SeriesLabel(s.Series, s.Kind), strings.Join(wide, "; ")))
		}
	}
	if len(list) > 0 {
		list[0] = "95 % bounds of percentiles, from the variation within this run: " + list[0]
	}
	switch {
	case narrow > 0 && len(list) > 0:
		list = append(list, fmt.Sprintf("All other bounds are within %s.", unit.FormatPercent(narrow)))
	case narrow > 0:
		list = append(list, fmt.Sprintf("95 %% bounds of these percentiles, from the variation within this run, are within %s.", unit.FormatPercent(narrow)))
	}
	return list
}
