package evaluate

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/rollup"
	"github.com/braggdev/bragg/internal/scenario"
)

// binsMax bounds the points of a percentile line: each holds a histogram while the record is read.
const binsMax = 500

// latencyResult collects the latencies of one result.
type latencyResult struct{ analysis.Latency }

func (ev *evaluator) newLatency(r *shown) *latencyResult {
	w := r.window
	traffic := r.Source == scenario.FromGroup || r.Source == scenario.FromWorkload
	if r.Type != "latency" || !traffic || w.ToNanos <= w.FromNanos {
		return nil
	}
	l := &latencyResult{}
	l.SizeBound = ev.sizeBound
	l.Windows = cover(result.Clip(ev.windows, w), w)
	l.PerVM = r.Aggregate == ""
	if !l.PerVM {
		// Bins are aligned to the grid, so that the lines of mean and percentile share timestamps where possible. Long ones are
		// aligned to the rollups of the bundle instead, so that the line can be computed from those.
		l.FromNanos, l.ToNanos = r.grid.CellStart(w.FromNanos), r.grid.CellStart(w.ToNanos)
		l.BinNanos = int64(ev.stepOf(r.Result, w))
		if n := (w.ToNanos - w.FromNanos) / l.BinNanos; n > binsMax {
			l.BinNanos = (n/binsMax + 1) * l.BinNanos
		}
		if cell := int64(rollup.Cell); l.BinNanos > cell/2 {
			l.BinNanos = (l.BinNanos + cell - 1) / cell * cell
			l.LeadNanos = l.FromNanos % cell
		}
	}
	return l
}

// cover adds windows for the parts of w outside windows, so that every interval of the result has a window.
func cover(windows []result.Window, w result.Window) []result.Window {
	var out []result.Window
	at := w.FromNanos
	for _, next := range windows {
		if next.FromNanos > at {
			out = append(out, result.Window{FromNanos: at, ToNanos: next.FromNanos})
		}
		out = append(out, next)
		at = next.ToNanos
	}
	if at < w.ToNanos {
		out = append(out, result.Window{FromNanos: at, ToNanos: w.ToNanos})
	}
	return out
}

// latencyResult fills a result with latencies: service time, as in X-Ray and fio's clat, and response time, which counts
// from the intended start and so includes queueing behind slow operations. The mean is drawn, as
// X-Ray does, and of all VMs together the 99th percentile. Statistics are of operations, from merged histograms.
func (ev *evaluator) latencyResult(ctx context.Context, r *shown, e *sheet, loads []result.LoadSummary) {
	l := r.latency
	service := ev.linesOf(r, e, analysis.Service)
	response := ev.linesOf(r, e, analysis.Response)
	_, source := choose(r.Result)
	e.Source = source + ", measured by its load generators"
	if len(service) == 0 {
		if len(ev.linesOf(r, e, analysis.IOPS)) > 0 {
			e.Missing = "The load generators of this result do not report latencies over time."
			return
		}
		ev.deviceResult(ctx, r, e)
		return
	}
	open := l.open()
	loops := loopsOf(r.Result, &e.Evaluated, loads)
	correct := !slices.ContainsFunc(loops, func(l interval.Loop) bool { return l != interval.LoopClosed && l != interval.LoopOpen })
	e.Source += loopText(loops)
	names, single := l.VMs(), len(service) == 1
	if !l.PerVM {
		service = []analysis.Line{analysis.Combine(service, r.Aggregate)}
		response = []analysis.Line{analysis.Combine(response, r.Aggregate)}
		names = []string{service[0].Name}
	}
	for _, name := range names {
		e.latencyStats(name, l.Of(name), l.Windows, open, correct)
	}
	step := ev.stepOf(r.Result, e.window())
	draw := func(lines []analysis.Line, kind string, q analysis.Quantity) {
		for _, line := range lines {
			points := r.grid.Points(line, step, q)
			e.addIntervalStats(line.Name, kind, points)
			drawn, pieces := r.grid.Pieced(points, line, step)
			e.addLine(result.Series{Name: line.Name, Kind: kind, Statistic: "mean", Points: drawn, Pieces: pieces}, len(service)+len(response))
		}
	}
	draw(service, "service", analysis.Service)
	if open {
		draw(response, "response", analysis.Response)
	}
	if !l.PerVM {
		e.addBounds(l)
		s, p := l.P99Line()
		e.addP99(r, service[0], single, "service", s)
		if open {
			e.addP99(r, response[0], single, "response", p)
		}
	}
}

// addP99 adds the line of percentiles of all VMs together.
func (e *sheet) addP99(r *shown, l analysis.Line, single bool, kind string, points result.Points) {
	if !anyValue(points) {
		return
	}
	s := result.Series{Name: l.Name, Kind: kind, Statistic: "p99", Points: points}
	if single { // percentiles of several VMs cannot be joined
		s.Points, s.Pieces = r.grid.Pieced(points, l.Outline(), time.Duration(r.latency.BinNanos))
	}
	e.addLine(s, 1)
}

func anyValue(points result.Points) bool {
	return slices.ContainsFunc(points, func(p result.Point) bool { return !math.IsNaN(p.Value) })
}

// loopText describes what the latency of a result counts.
func loopText(loops []interval.Loop) string {
	unknown := slices.ContainsFunc(loops, func(l interval.Loop) bool { return !l.Known() })
	switch {
	case slices.Contains(loops, interval.LoopPaced):
		return "; service time of a load with a rate, whose operations may have waited before it: response time is not measured"
	case unknown || len(loops) == 0:
		return "; whether the loop is open or closed is not declared"
	case slices.Contains(loops, interval.LoopOpen):
		return ""
	}
	return "; closed-loop load: response time = service time"
}

// open reports whether any load had a rate, so that response times differ from service times.
func (l *latencyResult) open() bool {
	has := func(times []analysis.Times) bool {
		return slices.ContainsFunc(times, func(t analysis.Times) bool { return t.Response() != nil })
	}
	return slices.ContainsFunc(append(l.VMs(), ""), func(vm string) bool { return has(l.Of(vm)) })
}
