package evaluate

import (
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/result"
)

const (
	// pointsMax bounds the points of one series in a report; pointsAll those of all series of one result.
	pointsMax = 1000
	pointsAll = 20_000
	pointsMin = 100
)

// sheet is one evaluated result that is being filled in.
type sheet struct {
	result.Evaluated
	windows []result.Window // of the run
	// lookback is how far before its own time a point of a query may describe.
	lookback int64
	// strict: a window without a point of its own has no statistics, rather than those of points that describe the time before it.
	strict bool
}

// window is the time range of the result.
func (e *sheet) window() result.Window {
	return result.Window{FromNanos: e.FromNanos, ToNanos: e.ToNanos}
}

// addSeries computes the statistics of a series from all its points and then thins it out for drawing.
func (e *sheet) addSeries(s result.Series, series int) {
	e.addPointStats(s, series)
	e.addLine(s, series)
}

// addGridLine is addSeries for a line of the grid, whose long intervals are drawn as one piece each.
func (e *sheet) addGridLine(g *analysis.Grid, l analysis.Line, step time.Duration, series int) {
	s := result.Series{Name: l.Name, Points: g.Points(l, step, analysis.Quantity(e.Type))}
	e.addPointStats(s, series)
	s.Points, s.Pieces = g.Pieced(s.Points, l, step)
	e.addLine(s, series)
}

func (e *sheet) addPointStats(s result.Series, series int) {
	e.addStats(s.Name, s.Kind, halfOf(s.Points), func(from, to int64) result.Stats {
		stats := analysis.PointStats(s.Points, from, to)
		if series == 1 && e.Type != "active" {
			stats.MeanBounds = analysis.MeanBounds(s.Points, from, to)
		}
		return stats
	})
}

// exactMeans replaces the means of points by those of operations and time, and moves their bounds with them.
func (e *sheet) exactMeans(r *shown) {
	if r.means == nil {
		return
	}
	for i := range e.Stats {
		row := &e.Stats[i]
		vm := row.Series
		if r.Aggregate != "" {
			vm = ""
		}
		at := slices.IndexFunc(r.means.Windows, func(w result.Window) bool { return w.Name == row.Window })
		if at < 0 {
			continue
		}
		mean := r.means.Of(vm, at, analysis.Quantity(e.Type), r.Aggregate)
		if math.IsNaN(mean) || row.Count == 0 {
			continue
		}
		row.MoveMean(mean)
	}
}

// addLine adds a series whose statistics come from elsewhere.
func (e *sheet) addLine(s result.Series, series int) {
	limit := min(max(pointsAll/max(series, 1), pointsMin), pointsMax)
	if n := len(s.Points); n > limit {
		s.ReducedFrom, s.Pieces = n, nil
		s.Points = analysis.Reduce(s.Points, limit)
	}
	for i := range s.Points {
		s.Points[i].Value = round(s.Points[i].Value)
		s.Points[i].Seconds = math.Round(s.Points[i].Seconds*1000) / 1000
	}
	for i := range s.Pieces {
		p := &s.Pieces[i]
		p.FromSeconds, p.ToSeconds = math.Round(p.FromSeconds*1000)/1000, math.Round(p.ToSeconds*1000)/1000
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
		// Dividing by a power of ten that is a whole number is exact; multiplying by its inverse is not.
		whole := math.Round(1 / scale)
		return math.Round(v/whole) * whole
	}
	return math.Round(v*scale) / scale
}

// addStats adds statistics of the whole window and of each window between steps that overlaps it.
func (e *sheet) addStats(name, kind string, half int64, stats func(from, to int64) result.Stats) {
	e.eachWindow(half, stats, func(window string, s result.Stats) {
		s.Window, s.Series, s.Kind = window, name, kind
		e.Stats = append(e.Stats, s)
	})
}

// eachWindow passes on the statistics of the total, whose window is "", and of each window. A point that crosses the
// boundary of two windows counts in neither, so that effects of an event do not appear in the window before it; half is
// half the width of a point. Nor do points of a query that look back beyond the start of a window; of a strict result, they do not count in the total either.
func (e *sheet) eachWindow(half int64, stats func(from, to int64) result.Stats,
	add func(window string, s result.Stats)) {
	from := e.FromNanos
	if e.strict {
		from += e.lookback
	}
	add("", stats(from, e.ToNanos))
	windows := result.Clip(e.windows, e.window())
	for i, w := range windows {
		from, to := w.FromNanos, w.ToNanos
		if i > 0 {
			from += half
		}
		if i < len(windows)-1 {
			to -= half
		}
		from = max(from, w.FromNanos+e.lookback)
		s := stats(from, to)
		if s.Count == 0 && !e.strict {
			s = stats(w.FromNanos, w.ToNanos) // too short for a separate point
		}
		add(w.Name, s)
	}
}

// halfOf returns how far the points of a series extend to both sides, less borderNanos.
func halfOf(points result.Points) int64 {
	step := analysis.CellLength.Seconds()
	if len(points) > 1 {
		step = points[1].Seconds - points[0].Seconds
	}
	return max(0, int64(step*1e9/2)-borderNanos)
}

// latencyStats adds the statistics of one series over the whole result and per window.
func (e *sheet) latencyStats(name string, times []analysis.Times, windows []result.Window, open, corrected bool) {
	var whole analysis.Times
	for i := range times[:min(len(times), len(windows)+1)] {
		whole.Merge(&times[i])
	}
	add := func(window string, t *analysis.Times, kind string) {
		s := t.Statistics(kind)
		s.Window, s.Series, s.Kind = window, name, kind
		if corrected {
			s.Corrected = t.CorrectedStats(kind)
		}
		e.Stats = append(e.Stats, *s)
	}
	kinds := []string{"service"}
	if open {
		kinds = append(kinds, "response")
	}
	for _, kind := range kinds {
		add("", &whole, kind)
	}
	for i, w := range windows {
		for _, kind := range kinds {
			if w.Name == "" || i >= len(times) {
				continue
			}
			add(w.Name, &times[i], kind)
			if border := &times[len(windows)+1+i]; !border.Empty() {
				with := analysis.Times{}
				with.Merge(&times[i])
				with.Merge(border)
				e.Stats[len(e.Stats)-1].WithBorders = &with.Statistics(kind).Distribution
			}
		}
	}
}

// addBounds gives the rows of all VMs together the bounds of their percentiles.
func (e *sheet) addBounds(l *latencyResult) {
	times := l.Of("")
	var whole analysis.Times
	for i := range times[:min(len(times), len(l.Windows)+1)] {
		whole.Merge(&times[i])
	}
	for i := range e.Stats {
		row := &e.Stats[i]
		if row.Window == "" {
			row.Bounds = l.Bounds(row.Kind, &whole, e.FromNanos, e.ToNanos)
		}
		for j, w := range l.Windows {
			if w.Name == row.Window && w.Name != "" && j < len(times) {
				row.Bounds = l.Bounds(row.Kind, &times[j], w.FromNanos, w.ToNanos)
			}
		}
	}
}

// addIntervalStats gives the rows of a series the statistics of the drawn points: means of intervals, from which X-Ray computes
// its report metrics.
func (e *sheet) addIntervalStats(name, kind string, points result.Points) {
	e.eachWindow(halfOf(points), func(from, to int64) result.Stats { return analysis.PointStats(points, from, to) },
		func(window string, s result.Stats) {
			for i := range e.Stats {
				if row := &e.Stats[i]; row.Window == window && row.Series == name && row.Kind == kind {
					row.Intervals = &result.IntervalStats{Count: s.Count, Mean: s.Mean, Median: s.Median, Max: s.Max, Min: s.Min, CV: s.CV}
				}
			}
		})
}
