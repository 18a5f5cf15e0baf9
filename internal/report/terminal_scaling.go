package report

import (
	"strconv"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/unit"
)

// printScaling prints throughput and response time against workers.
func printScaling(p *textPage, d *document.Document) {
	s := d.Scaling
	if s == nil {
		return
	}
	p.section("Scaling")
	p.text("", s.Sentence, p.Bold)
	for _, line := range document.ScalingText(s) {
		p.text("", line, nil)
	}
	p.line("")
	plot := draw.Plot{XName: "workers", YName: s.Unit + ": ● measured", X: func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) },
		Y: unit.FormatCount}
	for _, step := range s.Steps {
		plot.Points = append(plot.Points, draw.XY{X: float64(step.Workers), Y: float64(step.Throughput)})
	}
	if s.Fit != nil {
		plot.YName += ", · fit"
		for _, c := range s.Fit.Curve {
			plot.Curve = append(plot.Curve, draw.XY{X: float64(c.Workers), Y: float64(c.Value)})
		}
	}
	for _, line := range plot.Lines(min(p.width, plotColumns), p.Style) {
		p.line(line)
	}
	p.line("")
	t := document.ScalingTable(d)
	p.table(&t)
}

// plotColumns is the width of the chart: wider ones only look flatter.
const plotColumns = 64
