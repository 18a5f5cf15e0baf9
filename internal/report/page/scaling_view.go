package page

import (
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// newScalingFigures draws throughput and response time against workers.
func newScalingFigures(d *document.Document) (figures []figureView, charts []Chart) {
	s := d.Scaling
	if s == nil || len(s.Steps) == 0 {
		return nil, nil
	}
	points := func(value func(step *result.ScalingStep) result.Number) (list result.Points) {
		last := 0
		for i := range s.Steps {
			step := &s.Steps[i]
			if step.Workers > last { // a repeated number of workers is in the table only
				list = append(list, result.Point{Seconds: float64(step.Workers), Value: float64(value(step))})
				last = step.Workers
			}
		}
		return list
	}
	curve := func(value func(e *result.ScalingEstimate) result.Number) (list result.Points) {
		for i := range s.Fit.Curve {
			e := &s.Fit.Curve[i]
			list = append(list, result.Point{Seconds: float64(e.Workers), Value: float64(value(e))})
		}
		return list
	}
	measured := points(func(step *result.ScalingStep) result.Number { return step.Throughput })
	throughput := []Plotted{{Points: measured, ChartLine: ChartLine{Name: "measured", Dots: true}}}
	if s.Fit != nil {
		fit := "fit"
		if !s.Answered {
			fit = "fit (refused: do not use it)"
		}
		for i, line := range []struct {
			name, band string
			value      func(e *result.ScalingEstimate) result.Number
		}{
			{"95 % interval, low", "min", func(e *result.ScalingEstimate) result.Number { return e.Low }},
			{fit, "median", func(e *result.ScalingEstimate) result.Number { return e.Value }},
			{"95 % interval, high", "max", func(e *result.ScalingEstimate) result.Number { return e.High }},
		} {
			throughput = append(throughput, Plotted{Points: curve(line.value), ChartLine: ChartLine{Name: line.name, Band: line.band, Color: 1, Order: i + 1}})
		}
	}
	response := []Plotted{
		{Points: points(func(step *result.ScalingStep) result.Number { return step.P99 }), ChartLine: ChartLine{Name: "p99", Dash: 2}},
		{Points: points(func(step *result.ScalingStep) result.Number { return step.Median }), ChartLine: ChartLine{Name: "median", Color: 1, Order: 1}},
	}
	for _, one := range []struct {
		id, title, unit string
		lines           []Plotted
	}{{"scaling-throughput", "Throughput against workers", s.Unit, throughput}, {"scaling-response", "Response time against workers", "ns", response}} {
		c := Chart{ID: one.id, Title: one.title, Unit: one.unit, Against: "workers"}
		for _, l := range one.lines {
			for _, p := range l.Points {
				c.To = max(c.To, p.Seconds*1.02)
			}
		}
		c.Tables, _ = Tables(one.lines, c.From, c.To)
		charts = append(charts, c)
		figures = append(figures, figureView{ID: one.id, Drawn: true, Part: "chart", Rehearsal: d.Rehearsal != nil,
			Label: one.title + ". The table of scaling has the numbers.",
			Result: &document.Result{Evaluated: result.Evaluated{Title: one.title, Unit: one.unit,
				Source: "One worker is " + s.Worker + "; the start of each step is left out"}}})
	}
	return figures, charts
}
