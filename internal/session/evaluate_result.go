package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

const (
	// pointsMax bounds the points of one series in a report; pointsAll those of all series of one result.
	pointsMax = 1000
	pointsAll = 20_000
	pointsMin = 100
)

// result evaluates one result of the scenario. What it cannot say it leaves missing, with the reason.
func (ev *evaluator) result(ctx context.Context, r *shown, loads []result.LoadSummary) result.Evaluated {
	w := r.window
	e := result.Evaluated{
		Name: r.Name, Title: cmp.Or(r.Title, r.Name), Type: r.Type, Aggregate: r.Aggregate, ReportGroup: r.ReportGroup,
		Hint: r.Hint, Simulated: ev.manifest.Target.Simulated, FromNanos: w.FromNanos, ToNanos: w.ToNanos,
		Series: []result.Series{}, Stats: []result.Stats{},
	}
	switch {
	case w.ToNanos <= w.FromNanos && r.Mask != "":
		e.Missing = fmt.Sprintf("Workload %q, which the result is cut to, did not run.", r.Mask)
	case w.ToNanos <= w.FromNanos:
		e.Missing = "The run phase was not reached."
	case r.Source == scenario.FromMetric:
		e.Type = "metric"
		ev.metricResult(r, &e)
	case r.Source == scenario.FromQuery || r.Type == "generic":
		e.Type = "generic"
		ev.queryResult(ctx, r.Result, &e)
	case r.Type == "latency":
		ev.latencyResult(ctx, r, &e)
	default:
		ev.trafficResult(ctx, r, &e)
	}
	e.Unit = cmp.Or(e.Unit, unitOf(r.Type))
	scale := 1.0
	if r.Type == "latency" {
		scale = 1e3 // X-Ray states expected latencies in microseconds
	}
	if r.Expected != nil {
		expected := *r.Expected * scale
		e.Expected = &expected
	}
	for _, b := range r.Bands {
		e.Bands = append(e.Bands, result.Band{Name: b.Name, Lower: b.Lower * scale, Upper: b.Upper * scale})
	}
	e.Metrics = reportMetrics(r.Result, &e)
	e.Checks = ev.checks(r.Result, &e, loads)
	return e
}

func unitOf(kind string) string {
	switch kind {
	case "iops":
		return "IOPS"
	case "bandwidth":
		return "B/s"
	case "latency":
		return "ns"
	case "errors":
		return "errors"
	}
	return ""
}

// choose returns which intervals belong to a result, and the sentence that says so.
func choose(r scenario.Result) (func(workload, group string, prefill bool) bool, string) {
	if r.Source == scenario.FromWorkload {
		return func(workload, _ string, prefill bool) bool { return workload == r.Workload && !prefill },
			fmt.Sprintf("What workload %q recorded", r.Workload)
	}
	return func(_, group string, _ bool) bool { return group == r.Group },
		fmt.Sprintf("All traffic of group %q to its disks", r.Group)
}

// linesOf returns one line per VM.
func (ev *evaluator) linesOf(r *shown, e *result.Evaluated, q analysis.Quantity) []analysis.Line {
	keep, _ := choose(r.Result)
	tracks := r.grid.Tracks(func(t *analysis.Track) bool { return keep(t.Workload, t.Group, t.Prefill) })
	byVM := map[string][]*analysis.Track{}
	for _, t := range tracks {
		byVM[t.VM] = append(byVM[t.VM], t)
	}
	span := r.grid.Span(e.FromNanos, e.ToNanos)
	var lines []analysis.Line
	for _, vm := range slices.Sorted(maps.Keys(byVM)) {
		l := r.grid.VMLine(vm, byVM[vm], q, span)
		r.mask(&l)
		if slices.ContainsFunc(l.Values, func(v float64) bool { return !math.IsNaN(v) }) {
			lines = append(lines, l)
		}
	}
	return lines
}

// mask empties the cells between two runs of the workload that a result is cut to.
func (s *shown) mask(l *analysis.Line) {
	if len(s.extent) < 2 {
		return
	}
	for i := range l.Values {
		middle := s.grid.OriginNanos + int64(l.First+i)*int64(analysis.CellLength) + int64(analysis.CellLength)/2
		if !s.extent.At(middle) {
			l.Values[i] = math.NaN()
		}
	}
}

// trafficResult fills a result with IOPS, bytes, errors or activity from intervals.
func (ev *evaluator) trafficResult(ctx context.Context, r *shown, e *result.Evaluated) {
	q := analysis.Quantity(r.Type)
	lines := ev.linesOf(r, e, q)
	_, source := choose(r.Result)
	e.Source = source + ", as its load generators counted it"
	if len(lines) == 0 {
		ev.deviceResult(ctx, r, e)
		return
	}
	if r.Aggregate != "" {
		lines = []analysis.Line{analysis.Combine(lines, r.Aggregate)}
	}
	step := ev.stepOf(r.Result, result.Window{FromNanos: e.FromNanos, ToNanos: e.ToNanos})
	for _, l := range lines {
		ev.addSeries(e, result.Series{Name: l.Name, Points: r.grid.Points(l, step, q)}, len(lines))
	}
}

// addSeries computes the statistics of a series from all its points and then thins it out for drawing.
func (ev *evaluator) addSeries(e *result.Evaluated, s result.Series, series int) {
	ev.addStats(e, s.Name, s.Kind, halfOf(s.Points), func(from, to int64) result.Stats { return analysis.PointStats(s.Points, from, to) })
	ev.addLine(e, s, series)
}

// addLine adds a series whose statistics come from elsewhere.
func (ev *evaluator) addLine(e *result.Evaluated, s result.Series, series int) {
	limit := min(max(pointsAll/max(series, 1), pointsMin), pointsMax)
	if n := len(s.Points); n > limit {
		s.ReducedFrom = n
		s.Points = analysis.Reduce(s.Points, limit)
	}
	for i := range s.Points {
		s.Points[i].Value = round(s.Points[i].Value)
		s.Points[i].Seconds = math.Round(s.Points[i].Seconds*1000) / 1000
	}
	e.Series = append(e.Series, s)
}

// round keeps six significant digits: more cannot be drawn and would double the size of a report.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(scale, 0) || scale == 0 {
		return v
	}
	if scale < 1 {
		// Dividing by a power of ten that is a whole number is exact where multiplying by its inverse is not.
		whole := math.Round(1 / scale)
		return math.Round(v/whole) * whole
	}
	return math.Round(v*scale) / scale
}

// addStats adds statistics of the whole window and of each window between steps that it meets.
func (ev *evaluator) addStats(e *result.Evaluated, name, kind string, half int64, stats func(from, to int64) result.Stats) {
	ev.eachWindow(e, half, stats, func(window string, s result.Stats) {
		s.Window, s.Series, s.Kind = window, name, kind
		e.Stats = append(e.Stats, s)
	})
}

// eachWindow hands over the statistics of the whole, whose window is "", and of each window. A point across the border of two
// windows is about both and counts in neither, so that nothing of an event is told of the time before it; half is how far
// points reach.
func (ev *evaluator) eachWindow(e *result.Evaluated, half int64, stats func(from, to int64) result.Stats,
	add func(window string, s result.Stats)) {
	add("", stats(e.FromNanos, e.ToNanos))
	windows := clip(ev.windows, e)
	for i, w := range windows {
		from, to := w.FromNanos, w.ToNanos
		if i > 0 {
			from += half
		}
		if i < len(windows)-1 {
			to -= half
		}
		s := stats(from, to)
		if s.Count == 0 {
			s = stats(w.FromNanos, w.ToNanos) // too short for a point of its own
		}
		add(w.Name, s)
	}
}

// halfOf returns how far the points of a series reach to both sides, less borderNanos.
func halfOf(points result.Points) int64 {
	step := analysis.CellLength.Seconds()
	if len(points) > 1 {
		step = points[1].Seconds - points[0].Seconds
	}
	return max(0, int64(step*1e9/2)-borderNanos)
}

// clip returns the windows that meet the result's, cut to it.
func clip(windows []result.Window, e *result.Evaluated) []result.Window {
	var out []result.Window
	for _, w := range windows {
		w.FromNanos, w.ToNanos = max(w.FromNanos, e.FromNanos), min(w.ToNanos, e.ToNanos)
		if w.ToNanos > w.FromNanos {
			out = append(out, w)
		}
	}
	return out
}
