package report

import (
	"fmt"
	"io"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// TrendTerminal writes a trend as text for width columns (0: 100).
func TrendTerminal(w io.Writer, t *compare.Trend, width int, color bool) error {
	if width == 0 {
		width = draw.WidthDefault
	}
	t = page.Readable(t)
	p := &textPage{width: max(width, draw.WidthMin), Style: draw.Style{Color: color}}
	p.line(p.Bold("Trend of "+t.Scenario) + p.Dim("  "+t.Number))
	p.line("")
	p.text("", t.Headline, p.Bold)
	if t.Gate != nil {
		printGate(p, t.Gate)
	}
	p.line("")
	points := make(result.Points, len(t.Points))
	for i := range t.Points {
		points[i] = result.Point{Seconds: float64(i), Value: float64(t.Points[i].Value)}
	}
	if len(points) > 1 {
		p.line(p.Accent(draw.Sparkline(points, 0, float64(len(points)), min(len(points)*2, p.width))))
		p.line(p.Dim("one run after the other, drawn from zero"))
	}
	p.section("Runs")
	table := trendTable(t)
	p.table(&table)
	p.text("", "Band: a further run of the same level is within it in 95 % of cases. A change is where the level before and after differ more than "+
		"in 96.5 % of random orders of the same runs.", p.Dim)
	for _, text := range t.LeftOut {
		p.text("", text, p.Dim)
	}
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write trend: %w", err)
	}
	return nil
}

// trendTable has a row for each run; the first of a level has its band, and what changed with it.
func trendTable(t *compare.Trend) draw.Table {
	table := draw.Table{Heads: []string{"started", "run", "label", "value", "band", "note"}, Left: 3}
	for i := range t.Points {
		point, level := &t.Points[i], &t.Levels[t.Points[i].Level]
		band, note := "", ""
		if i == level.From {
			if band = "too few runs"; level.Runs > 2 {
				band = draw.Quantity(float64(level.Low), t.Unit) + " to " + draw.Quantity(float64(level.High), t.Unit)
			}
			if i > 0 {
				note = "changed by " + draw.Signed(unit.FormatPercent(float64(level.Change)))
				for _, f := range level.Factors {
					note += "; " + f
				}
			}
		}
		if point.Outside {
			note = "outside the band"
		}
		table.Add(point.Created.UTC().Format("2006-01-02 15:04"), point.Run, point.Label, draw.Quantity(float64(point.Value), t.Unit), band, note)
	}
	return table
}
