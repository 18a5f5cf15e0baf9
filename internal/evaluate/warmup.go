package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/rollup"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/steady"
	"github.com/braggdev/bragg/internal/unit"
)

// warmUps are the warm-ups that results leave out, by workload.
type warmUps map[string][]result.WarmUp

// findWarmUps finds the warm-ups that results leave out. It reads the intervals once more, because the time of a result has to be known
// before they are counted.
func findWarmUps(ctx context.Context, ev *evaluator) (warmUps, error) {
	courses := map[string]map[int]*steady.Course{}
	for _, r := range ev.in.Scenario.Results {
		if r.WarmUp != "" {
			courses[warmedUp(r)] = map[int]*steady.Course{}
		}
	}
	if len(courses) == 0 {
		return nil, nil
	}
	courseOf := func(iv *interval.Interval) *steady.Course {
		starts := courses[iv.Workload]
		if starts == nil || iv.Prefill {
			return nil // not needed
		}
		if starts[iv.Instance] == nil {
			starts[iv.Instance] = &steady.Course{}
		}
		return starts[iv.Instance]
	}
	for batch, err := range batches(ctx, ev, rollup.Cuts{}) {
		if err != nil {
			return nil, err
		}
		for i := range batch.Each {
			if c := courseOf(&batch.Each[i]); c != nil {
				c.AddCounts(&batch.Each[i])
			}
		}
		for i := range batch.Seconds {
			if c := courseOf(&batch.Seconds[i]); c != nil {
				c.AddTimes(&batch.Seconds[i])
			}
		}
	}
	found := warmUps{}
	for workload, starts := range courses {
		for _, s := range ev.timeline.StartsOf(workload) {
			found[workload] = append(found[workload], warmUpOf(ev, s, starts[s.Instance]))
		}
	}
	return found, nil
}

// warmedUp is the workload whose warm-up a result leaves out.
func warmedUp(r scenario.Result) string { return cmp.Or(r.Mask, r.Workload) }

// warmUpOf judges one start of a workload up to the first event after it: what an event does to a load is not a warm-up. The start of
// another workload is one only if there is enough before it to judge: workloads are often started one after another.
func warmUpOf(ev *evaluator, s analysis.LoadStart, c *steady.Course) result.WarmUp {
	out := result.WarmUp{Workload: s.Workload, Instance: s.Instance, FromNanos: s.FromNanos, ToNanos: s.FromNanos}
	to := s.ToNanos
	for _, w := range ev.windows {
		until := min(w.ToNanos, s.ToNanos)
		_, starts := ev.plan.Workload(w.After)
		if until > s.FromNanos && (!starts || until-s.FromNanos >= steady.ValuesMin*max(c.Width(), int64(time.Second))) {
			to = until
			break
		}
	}
	part := c.Over(s.FromNanos, to, ev.manifest.Engines[s.Workload].RateUnit())
	v := steady.WarmUp(part.Series...)
	out.Steady, out.Why = v.State == steady.Steady, v.Why()
	if v.WarmUp > 0 && !out.Steady {
		out.Why = fmt.Sprintf("after %s, %s", unit.FormatDuration(time.Duration(int64(v.WarmUp)*c.Width())), out.Why)
	} else if v.WarmUp > 0 {
		out.ToNanos = part.FromNanos + int64(v.WarmUp)*c.Width()
		whole := steady.Judge(part.Series...)
		out.Why = cmp.Or(whole.Why(), "they differ from the rest")
	}
	if !out.Steady {
		out.Why = fmt.Sprintf("%s did not become steady in its first %s: %s", s.Workload, unit.FormatDuration(time.Duration(to-s.FromNanos).Round(time.Second)), out.Why)
	}
	return out
}

// rampsOf returns the time in which a load does not count its operations, for each of its starts. A result of a group has them if only one
// workload runs there: others may count in that time.
func rampsOf(r scenario.Result, p *plan.Plan, t *analysis.Timeline) (list []result.WarmUp) {
	if r.WarmUp != "" || p == nil {
		return nil
	}
	name := warmedUp(r)
	if name == "" && r.Source == scenario.FromGroup {
		name = p.OnlyWorkloadOf(r.Group)
	}
	w, known := p.Workload(name)
	if !known || w.Load == nil || w.Load.Ramp <= 0 {
		return nil
	}
	for _, s := range t.StartsOf(name) {
		list = append(list, result.WarmUp{Workload: name, Instance: s.Instance, FromNanos: s.FromNanos,
			ToNanos: min(s.FromNanos+int64(w.Load.Ramp), s.ToNanos), Ramp: true, Steady: true})
	}
	return list
}

// withoutRamps leaves ramps out of the time of a result, unless nothing would be left of it.
func withoutRamps(x analysis.Extent, ramps []result.WarmUp) analysis.Extent {
	rest := x
	for _, w := range ramps {
		rest = without(rest, w.FromNanos, w.ToNanos)
	}
	if len(rest) == 0 {
		return x
	}
	return rest
}

// leftOut leaves the warm-ups of a workload out of the time of a result, with the time before it in which it did not run.
func (u warmUps) leftOut(r scenario.Result, x analysis.Extent, t *analysis.Timeline) analysis.Extent {
	if r.WarmUp == "" {
		return x
	}
	before := int64(0) // end of the start before
	ends := map[int]int64{}
	for _, s := range t.StartsOf(warmedUp(r)) {
		ends[s.Instance] = s.ToNanos
	}
	for _, w := range u[warmedUp(r)] {
		if w.ToNanos > w.FromNanos {
			x = without(x, before, w.ToNanos)
		}
		before = ends[w.Instance]
	}
	return x
}

// without removes [from, to) from every stretch.
func without(x analysis.Extent, from, to int64) analysis.Extent {
	out := analysis.Extent{}
	for _, w := range x {
		left, right := w, w
		left.ToNanos, right.FromNanos = min(w.ToNanos, from), max(w.FromNanos, to)
		for _, part := range []result.Window{left, right} {
			if part.ToNanos > part.FromNanos {
				out = append(out, part)
			}
		}
	}
	return out
}

// unsettled returns why a load of a result is not known to be steady although the scenario wants it to be; "" if it is, or if the
// scenario does not.
func (u warmUps) unsettled(r scenario.Result, events []interval.Event, loads []result.LoadSummary) string {
	if r.WarmUp != "" {
		for _, w := range u[warmedUp(r)] {
			if !w.Steady {
				return w.Why
			}
		}
	}
	keep, _ := choose(r)
	for i := range events {
		e := &events[i]
		if e.Kind != interval.EventSteady || e.Error == "" {
			continue
		}
		if e.Workload == r.Mask || slices.ContainsFunc(loads, func(l result.LoadSummary) bool {
			return l.Workload == e.Workload && keep(l.Workload, l.Group, l.Prefill)
		}) {
			return e.Message
		}
	}
	return ""
}
