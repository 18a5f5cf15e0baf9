package page

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// overlay is one chart of several results, in which time counts from the start of each result's workload.
type overlay struct {
	figureView
	chart Chart
	name  string
}

// newOverlays draws what the scenario wants to see in one chart. A chart needs two results with data.
func newOverlays(d *document.Document) (list []overlay) {
	var names []string
	of := map[string][]*document.Result{}
	for i := range d.Results {
		r := &d.Results[i]
		if r.Overlay == "" || len(r.Series) == 0 {
			continue
		}
		if len(of[r.Overlay]) == 0 {
			names = append(names, r.Overlay)
		}
		of[r.Overlay] = append(of[r.Overlay], r)
	}
	for _, name := range names {
		if results := of[name]; len(results) > 1 {
			list = append(list, newOverlay(d, name, results, fmt.Sprintf("overlay-%d", len(list)+1)))
		}
	}
	return list
}

func newOverlay(d *document.Document, name string, results []*document.Result, id string) overlay {
	shared := document.Result{Evaluated: result.Evaluated{Title: name, Type: results[0].Type, Unit: results[0].Unit,
		Source: "Time counts from the start of each workload", Simulated: results[0].Simulated}}
	c := Chart{ID: id, Title: name, Unit: results[0].Unit, Against: "seconds since the workload's start"}
	for _, r := range results {
		start := startOf(d, r)
		for i := range r.Series {
			s := r.Series[i] // its points are shared
			s.Points, s.Pieces = nil, nil
			for _, p := range r.Series[i].Points {
				p.Seconds -= start
				s.Points = append(s.Points, p)
				if !math.IsNaN(p.Value) { // a result has gaps until its window ends
					c.To = max(c.To, p.Seconds)
				}
			}
			s.Name = overlaidName(r, s.Name)
			shared.Series = append(shared.Series, s)
		}
	}
	lines, reduced := plottedLines(shared.Series)
	c.Log = shared.Type == "latency" && needsLog(shared.Series)
	var thinned bool
	c.Tables, thinned = Tables(lines, c.From, c.To)
	f := figureView{ID: id, Result: &shared, Part: "chart", Drawn: c.To > 0, Rehearsal: d.Rehearsal != nil, Reduced: reduced || thinned,
		Log: shared.Type == "latency", LogFirst: c.Log, Many: len(shared.Series) > ManySeries,
		Label: fmt.Sprintf("Line chart of %s with %d lines, each from the start of its workload.", name, len(lines))}
	return overlay{f, c, name}
}

// startOf is when the workload of a result first started, in seconds; without a record of it, when the result begins.
func startOf(d *document.Document, r *document.Result) float64 {
	start := int64(math.MaxInt64)
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.Name == r.Workload && !w.Prefill {
			start = min(start, w.FromNanos)
		}
	}
	if start == math.MaxInt64 {
		from, _ := r.Extent()
		return from
	}
	return float64(start) / 1e9
}

// overlaidName is that of a line among those of other results.
func overlaidName(r *document.Result, series string) string {
	for i := range r.Series {
		if r.Series[i].Name != series {
			return r.Heading() + ", " + series
		}
	}
	return r.Heading()
}
