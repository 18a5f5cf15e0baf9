package report

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

func changeText(d *compare.Difference) string {
	text := "from 0"
	if d.Base > 0 {
		if text = draw.Signed(unit.FormatPercent(float64(d.Change))); d.Change >= 9 {
			text = ratioText(d.Value / d.Base)
		}
	}
	return text
}

func noiseText(d *compare.Difference) string {
	switch noise := float64(d.Noise); {
	case math.IsNaN(noise):
		return "unknown"
	case !d.BeyondNoise:
		return "±" + unit.FormatPercent(noise) + ": within noise"
	default:
		return "±" + unit.FormatPercent(noise)
	}
}

// differenceTable has the largest differences as the page and the terminal show them.
func differenceTable(c *compare.Comparison) draw.Table {
	t := draw.Table{Heads: []string{"figure", "window", c.Runs[0].Name, c.Runs[1].Name, "change", "noise"}, Left: 2}
	several := len(c.Runs) > 2
	if several {
		t.Heads[3] = "other run"
	}
	for i := range c.Largest {
		d := &c.Largest[i]
		value := quantityOf(d.Value, d.Unit)
		if several {
			value = fmt.Sprintf("%s: %s", c.Runs[d.Run].Name, value)
		}
		window := "whole run"
		if d.Result != "" {
			window = document.WindowLabel(d.Window)
		}
		t.Add(d.Label(), window, quantityOf(d.Base, d.Unit), value, changeText(d), noiseText(d))
	}
	return t
}

func quantityOf(v result.Number, unitName string) string {
	if unitName == "errors" || unitName == "operations" {
		return unit.FormatWhole(uint64(v)) + " " + unitName
	}
	return draw.Quantity(float64(v), unitName)
}

const differencesNote = "Ordered by relative change beyond noise. Noise is two standard errors of the difference, from the means of ten " +
	"batches of each window; it does not include run-to-run variance."

// comparedValidity prints what casts doubt on the comparison.
func (p *textPage) comparedValidity(c *compare.Comparison) {
	p.section("Comparability")
	for _, warning := range c.Warnings {
		p.text("  ", "warning: "+warning, p.Doubt)
	}
	for _, f := range c.ShownFindings() {
		p.finding(f.Of, f.Finding)
	}
	if calm := c.Calm(); calm != "" {
		p.text("", calm, nil)
	}
}

// comparedDifferences prints the largest differences.
func (p *textPage) comparedDifferences(c *compare.Comparison) {
	p.section("Largest differences")
	if len(c.Largest) == 0 {
		p.text("", c.NoDifference(), nil)
		return
	}
	t := differenceTable(c)
	p.table(&t)
	p.text("", differencesNote, p.Dim)
}
