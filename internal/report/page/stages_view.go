package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// stageChartsMax is how many curves are drawn.
const stageChartsMax = 6

// newStageFigures draws response time against the rate of each curve.
func newStageFigures(d *document.Document) (figures []figureView, charts []Chart) {
	for i := range d.Stages {
		s := &d.Stages[i]
		var curves []int
		for k := range s.List {
			if c := s.List[k].Curve; c > 0 && !slices.Contains(curves, c) {
				curves = append(curves, c)
			}
		}
		for _, curve := range curves {
			id := fmt.Sprintf("stages-%d-%d", i, curve)
			c, drawn := stageChart(s, curve, id)
			if !drawn || len(charts) == stageChartsMax {
				continue
			}
			charts = append(charts, c)
			figures = append(figures, figureView{ID: id, Drawn: true, Part: "chart", Rehearsal: d.Rehearsal != nil,
				Label:  c.Title + ". The table of stages has the numbers.",
				Result: &document.Result{Evaluated: result.Evaluated{Title: c.Title, Unit: c.Unit, Source: "Response times of all VMs together; the beginning of each stage is left out"}}})
		}
	}
	return figures, charts
}

// stageChart draws one curve; false if it has less than two rates.
func stageChart(s *result.Stages, curve int, id string) (Chart, bool) {
	var list []result.Stage
	for _, one := range s.List {
		if one.Curve == curve && one.Asked > 0 {
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b result.Stage) int { return cmp.Compare(a.Rate, b.Rate) })
	list = slices.CompactFunc(list, func(a, b result.Stage) bool { return a.Rate == b.Rate })
	if len(list) < 2 {
		return Chart{}, false
	}
	points := func(value func(one *result.Stage) result.Number) (all result.Points) {
		for i := range list {
			all = append(all, result.Point{Seconds: float64(list[i].Rate), Value: float64(value(&list[i]))})
		}
		return all
	}
	lines := []Plotted{
		{Points: points(func(one *result.Stage) result.Number { return one.P99 }), ChartLine: ChartLine{Name: "p99", Dash: 2}},
		{Points: points(func(one *result.Stage) result.Number { return one.Median }), ChartLine: ChartLine{Name: "median", Color: 1, Order: 1}},
	}
	c := Chart{ID: id, Title: "Response time of " + document.StagesName(s) + " against its rate", Unit: "ns", Against: s.Unit, To: 1.02 * float64(list[len(list)-1].Rate)}
	c.Tables, _ = Tables(lines, c.From, c.To)
	return c, true
}
