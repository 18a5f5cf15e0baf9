package page

import (
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// durationsChartID is the chart of durations on a page.
const durationsChartID = "durations-chart"

// newDurationsFigure draws each operation at its start time, with its duration as the height.
func newDurationsFigure(d *document.Document) (*figureView, Chart) {
	series := document.DurationSeries(d)
	if len(series) == 0 {
		return nil, Chart{}
	}
	r := document.Result{Evaluated: result.Evaluated{Name: "durations", Title: "Operation duration by start time", Type: "duration", Unit: "ns",
		ToNanos: d.DurationNanos, Series: series, Source: "Time between events"}}
	shown := *d
	shown.Results = []document.Result{r}
	f, c := newFigure(&shown, 0)
	f.ID, c.ID, f.Log, f.Alone = durationsChartID, durationsChartID, true, false
	return &f, c
}
