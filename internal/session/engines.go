package session

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// plannedEngine is what the plan says drives a workload; zero when there is no such load.
func plannedEngine(p *plan.Plan, workload string, prefill bool) interval.Engine {
	w, ok := p.Workload(workload)
	switch {
	case ok && prefill && w.Prefill != nil:
		return w.Prefill.Engine
	case ok && !prefill && w.Load != nil:
		return w.Load.Engine
	}
	return interval.Engine{}
}

// began takes what drives a load on one VM, as it came out there, and records it when the plan said otherwise.
func (c *carrier) began(w load.Workload, engine interval.Engine) {
	planned := plannedEngine(&c.Plan.Plan, w.Name, w.Prefill)
	if engine.IsZero() || reflect.DeepEqual(engine, planned) {
		return
	}
	what := w.Name
	if w.Prefill {
		what = "the prefill for " + w.Name
	}
	c.record.Event(interval.Event{
		AtNanos: c.record.now(), Kind: interval.EventEngine, Workload: w.Name, Instance: w.Instance, Prefill: w.Prefill,
		Group: w.Group, Subject: w.VM, Engine: &engine,
		Message: fmt.Sprintf("%s on %s runs with %q instead of %q", what, w.VM, engine, planned),
	})
}

// setEngines replaces the planned engine of each roll-up by what ran. VMs that reported no other ran as planned.
func (ev *evaluator) setEngines(list []result.LoadSummary) {
	for i := range list {
		l := &list[i]
		if engine := plannedEngine(ev.plan, l.Workload, true); l.Prefill && !engine.IsZero() {
			l.Engines = []interval.Engine{engine}
		}
		other := map[string]bool{} // VMs that did not run as planned
		var engines []interval.Engine
		for _, e := range ev.events {
			if e.Kind != interval.EventEngine || e.Workload != l.Workload || e.Group != l.Group || e.Instance != l.Instance ||
				e.Prefill != l.Prefill || e.Engine == nil {
				continue
			}
			other[e.Subject] = true
			if !slices.ContainsFunc(engines, func(o interval.Engine) bool { return reflect.DeepEqual(o, *e.Engine) }) {
				engines = append(engines, *e.Engine)
			}
		}
		if len(engines) == 0 {
			continue
		}
		// Events of VMs that start together come in any order.
		slices.SortFunc(engines, func(a, b interval.Engine) int { return cmp.Compare(a.String(), b.String()) })
		if len(other) < l.VMs {
			engines = append(l.Engines, engines...)
		}
		l.Engines = engines
	}
}
