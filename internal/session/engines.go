package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// plannedEngine names what the plan says drives a workload; empty when there is no such load.
func plannedEngine(p *plan.Plan, workload string, prefill bool) string {
	w, ok := p.Workload(workload)
	switch {
	case ok && prefill && w.Prefill != nil:
		return w.Prefill.Engine
	case ok && !prefill && w.Load != nil:
		return w.Load.Engine
	}
	return ""
}

// began takes what drives a load on one VM, as it came out there, and records it when the plan said otherwise.
func (c *carrier) began(w load.Workload, engine string) {
	planned := plannedEngine(&c.Plan.Plan, w.Name, w.Prefill)
	if engine == "" || engine == planned {
		return
	}
	what := w.Name
	if w.Prefill {
		what = "the prefill for " + w.Name
	}
	c.record.Event(interval.Event{
		AtNanos: c.record.now(), Kind: interval.EventEngine, Workload: w.Name, Instance: w.Instance, Prefill: w.Prefill,
		Group: w.Group, Subject: w.VM, Engine: engine,
		Message: fmt.Sprintf("%s on %s runs with %q instead of %q", what, w.VM, engine, planned),
	})
}

// enginesShownMax bounds how many engines one roll-up names: a text may differ from VM to VM by the path of a disk.
const enginesShownMax = 3

// nameEngines replaces the planned engine of each roll-up by what ran. VMs without a word of their own ran as planned.
func (ev *evaluator) nameEngines(list []result.LoadSummary) {
	for i := range list {
		l := &list[i]
		if engine := plannedEngine(ev.plan, l.Workload, true); l.Prefill && engine != "" {
			l.Engine = engine
		}
		other := map[string]bool{} // VMs that did not run as planned
		var names []string
		for _, e := range ev.events {
			if e.Kind != interval.EventEngine || e.Workload != l.Workload || e.Group != l.Group || e.Instance != l.Instance ||
				e.Prefill != l.Prefill || e.Engine == "" {
				continue
			}
			other[e.Subject] = true
			if !slices.Contains(names, e.Engine) {
				names = append(names, e.Engine)
			}
		}
		if len(names) == 0 {
			continue
		}
		slices.Sort(names) // events of VMs that start together come in any order
		if len(other) < l.VMs && l.Engine != "" {
			names = slices.Insert(names, 0, l.Engine)
		}
		if n := len(names) - enginesShownMax; n > 0 {
			names = append(names[:enginesShownMax], fmt.Sprintf("and %d more", n))
		}
		l.Engine = strings.Join(names, result.EngineSeparator)
	}
}
