package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// results evaluates the results of the scenario, on all processors. s has everything else that checks need.
func results(ctx context.Context, ev *evaluator, s *result.Summary) []result.Evaluated {
	list := make([]result.Evaluated, len(ev.shown))
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				list[i] = ev.result(ctx, ev.shown[i], s)
			}
		})
	}
	working.Wait()
	return list
}

// result evaluates one result of the scenario. Missing values are left empty, with the reason.
func (ev *evaluator) result(ctx context.Context, r *shown, s *result.Summary) result.Evaluated {
	w := r.window
	e := sheet{windows: ev.windows, Evaluated: result.Evaluated{
		Name: r.Name, Title: cmp.Or(r.Title, r.Name), Type: r.Type, Aggregate: r.Aggregate, Workload: cmp.Or(r.Workload, r.Mask), Group: r.Group, ReportGroup: r.ReportGroup,
		Overlay: r.Overlay, Hint: r.Hint, Simulated: ev.manifest.Target.Simulated, FromNanos: w.FromNanos, ToNanos: w.ToNanos,
		Series: []result.Series{}, Stats: []result.Stats{},
	}}
	switch {
	case w.ToNanos <= w.FromNanos && r.Mask != "":
		e.Missing = fmt.Sprintf("No data: workload %q never ran.", r.Mask)
	case w.ToNanos <= w.FromNanos:
		e.Missing = "No data: the run phase was not reached."
	case r.Source == scenario.FromMetric:
		e.Type = "metric"
		ev.metricResult(r, &e)
	case r.Source == scenario.FromQuery || r.Type == "generic":
		e.Type = "generic"
		ev.queryResult(ctx, r.Result, &e)
	case r.Type == "latency":
		ev.latencyResult(ctx, r, &e, s.Loads)
	default:
		ev.trafficResult(ctx, r, &e)
	}
	e.addStalls(r, &ev.stalls)
	e.Unit = cmp.Or(e.Unit, unitOf(r.Type, ev.manifest.Engines[r.Workload]), labelledUnit(r.Result))
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
	if r.WarmUp != "" {
		e.WarmUps = ev.warmUps[warmedUp(r.Result)]
	} else {
		e.WarmUps = rampsOf(r.Result, ev.plan, ev.timeline)
	}
	e.Metrics = reportMetrics(r.Result, &e.Evaluated)
	e.Checks = ev.checks(r.Result, &e.Evaluated, s)
	return e.Evaluated
}

// labelledUnit is what the scenario writes on the vertical axis of a query, if that is a unit and not a title.
func labelledUnit(r scenario.Result) string {
	if r.Source != scenario.FromQuery || len(r.YLabel) > unitBytesMax || strings.ContainsAny(r.YLabel, " \t()") {
		return ""
	}
	return r.YLabel
}

// unitBytesMax is the longest label that is taken for a unit: "transactions/s" is one.
const unitBytesMax = 16

func unitOf(kind string, engine interval.Engine) string {
	switch kind {
	case "iops":
		return engine.RateUnit()
	case "bandwidth":
		return "B/s"
	case "latency":
		return "ns"
	case "errors":
		return "errors"
	}
	return ""
}

// choose returns which intervals belong to a result, and a sentence that describes them.
func choose(r scenario.Result) (func(workload, group string, prefill bool) bool, string) {
	if r.Source == scenario.FromWorkload {
		return func(workload, _ string, prefill bool) bool { return workload == r.Workload && !prefill },
			fmt.Sprintf("Workload %q", r.Workload)
	}
	return func(_, group string, _ bool) bool { return group == r.Group },
		fmt.Sprintf("Disk traffic of group %q", r.Group)
}

// linesOf returns one line per VM.
func (ev *evaluator) linesOf(r *shown, e *sheet, q analysis.Quantity) []analysis.Line {
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

// mask empties the cells between two runs of the workload that a result is restricted to.
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
func (ev *evaluator) trafficResult(ctx context.Context, r *shown, e *sheet) {
	q := analysis.Quantity(r.Type)
	lines := ev.linesOf(r, e, q)
	_, source := choose(r.Result)
	e.Source = source + ", measured by its load generators"
	if len(lines) == 0 {
		ev.deviceResult(ctx, r, e)
		return
	}
	if r.Aggregate != "" {
		lines = []analysis.Line{analysis.Combine(lines, r.Aggregate)}
	}
	step := ev.stepOf(r.Result, e.window())
	for _, l := range lines {
		e.addGridLine(r.grid, l, step, len(lines))
	}
	e.exactMeans(r)
}
