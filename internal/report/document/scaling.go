package document

import (
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// ScalingTable has a row for each step of a run that grows; it is empty for other runs.
func ScalingTable(d *Document) draw.Table {
	if d.Scaling == nil {
		return draw.Table{}
	}
	s := d.Scaling
	t := draw.Table{Heads: []string{"workers", "throughput", "fit", "of linear", "mean response", "median", "p99"}}
	for _, step := range s.Steps {
		share := "–"
		if !math.IsNaN(float64(step.Share)) {
			share = unit.FormatPercent(float64(step.Share))
		}
		t.Add(strconv.Itoa(step.Workers), draw.Quantity(float64(step.Throughput), s.Unit), draw.Amount(float64(step.Fitted), s.Unit), share,
			draw.Quantity(float64(step.Mean), "ns"), draw.Quantity(float64(step.Median), "ns"), draw.Quantity(float64(step.P99), "ns"))
	}
	return t
}

// ScalingText are the sentences below the first one: density, then reasons and restrictions.
func ScalingText(s *result.Scaling) []string {
	lines := []string{}
	if s.Density != "" {
		lines = append(lines, s.Density)
	}
	return append(append(lines, s.Notes...), "One worker is "+s.Worker+".")
}
