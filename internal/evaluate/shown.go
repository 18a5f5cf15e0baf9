package evaluate

import (
	"cmp"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// shown is a result of the scenario with its time range. Chart, statistics and windows all use exactly the data in that
// range.
type shown struct {
	scenario.Result
	window  result.Window   // from the first time to the last; empty if there is none
	extent  analysis.Extent // the stretches of it that count
	grid    *analysis.Grid  // shared by results with the same time range
	latency *latencyResult  // nil for other types
	means   *analysis.Means // of the whole and of each window; nil for what is not a rate
	keep    func(workload, group string, prefill bool) bool
}

func (ev *evaluator) newShown(r scenario.Result) *shown {
	s := &shown{Result: r}
	s.extent = withoutRamps(ev.warmUps.leftOut(r, ev.extentOf(r), ev.timeline), rampsOf(r, ev.plan, ev.timeline))
	s.keep, _ = choose(r)
	for i, w := range s.extent {
		if i == 0 {
			s.window = w
		}
		s.window.FromNanos, s.window.ToNanos = min(s.window.FromNanos, w.FromNanos), max(s.window.ToNanos, w.ToNanos)
	}
	s.window.Name = ""
	s.grid = ev.gridFor(s)
	s.latency = ev.newLatency(s)
	if traffic := r.Source == scenario.FromGroup || r.Source == scenario.FromWorkload; traffic && (r.Type == "iops" || r.Type == "bandwidth") {
		s.means = &analysis.Means{SizeBound: ev.sizeBound, Extent: s.extent, Windows: append([]result.Window{s.window}, result.Clip(ev.windows, s.window)...)}
	}
	return s
}

// extentOf returns the time range of a result: the run phase, or with a mask the runs of that workload. As in X-Ray, a mask also
// shows all of a run that began in setup, even if it ended there. If the workload did not run in the run phase, its data is shown
// from its first start.
func (ev *evaluator) extentOf(r scenario.Result) analysis.Extent {
	all := ev.startsOf(cmp.Or(r.Mask, r.Workload))
	inPhase := slices.DeleteFunc(slices.Clone(all), func(w result.Window) bool {
		return w.ToNanos <= ev.phase.FromNanos || w.FromNanos >= ev.phase.ToNanos
	})
	switch {
	case r.Mask != "" && len(inPhase) > 0:
		return inPhase
	case r.Mask != "", r.Source == scenario.FromWorkload && len(all) > 0 && len(inPhase) == 0:
		return all
	}
	if ev.phase.ToNanos <= ev.phase.FromNanos {
		return analysis.Extent{}
	}
	return analysis.Extent{ev.phase}
}

// startsOf returns the stretches in which a workload ran.
func (ev *evaluator) startsOf(workload string) analysis.Extent {
	x := analysis.Extent{}
	for _, s := range ev.timeline.StartsOf(workload) {
		if s.ToNanos > s.FromNanos {
			x = append(x, result.Window{FromNanos: s.FromNanos, ToNanos: s.ToNanos})
		}
	}
	return x
}

// gridFor returns the grid for a result's time range. Results with the same range share a grid.
func (ev *evaluator) gridFor(s *shown) *analysis.Grid {
	for _, g := range ev.grids() {
		if slices.Equal(g.Extent, s.extent) {
			return g
		}
	}
	return ev.newGrid(s.window, s.extent)
}

func (ev *evaluator) newGrid(w result.Window, x analysis.Extent) *analysis.Grid {
	g := analysis.NewGrid(w.FromNanos, w.ToNanos)
	g.SizeBound, g.Extent = ev.sizeBound, x
	return g
}

// grids lists each grid once.
func (ev *evaluator) grids() []*analysis.Grid {
	list := []*analysis.Grid{ev.grid}
	for _, s := range ev.shown {
		if !slices.Contains(list, s.grid) {
			list = append(list, s.grid)
		}
	}
	return list
}

// add takes one interval, if it belongs to the result.
func (s *shown) add(iv *interval.Interval) {
	if s.means != nil && s.keep(iv.Workload, iv.Group, iv.Prefill) {
		s.means.Add(iv)
	}
}

// addMerged takes an interval, or several that were merged between cuts, if they belong to the result.
func (s *shown) addMerged(iv *interval.Interval) {
	if s.latency != nil && s.keep(iv.Workload, iv.Group, iv.Prefill) && s.extent.Holds(iv) {
		s.latency.Add(iv)
	}
}

// nothing returns the reason why there is no traffic to show.
func (s *shown) nothing() string {
	if len(s.grid.Tracks(func(t *analysis.Track) bool { return s.keep(t.Workload, t.Group, t.Prefill) })) > 0 {
		return "No interval lies within the time of this result."
	}
	return "No data from load generators."
}

// stepOf returns the length of one point. A rehearsal shortens windows; a step that would leave a window with fewer than ten
// points is shortened to match.
func (ev *evaluator) stepOf(r scenario.Result, w result.Window) time.Duration {
	step := max(r.Step, analysis.CellLength)
	if ev.manifest.Rehearsal != nil {
		step = min(step, max(time.Duration(w.ToNanos-w.FromNanos)/10, analysis.CellLength))
	}
	return step.Round(analysis.CellLength)
}
