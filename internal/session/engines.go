package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/run"
)

// plannedEngine names what the plan says drives a workload; empty when there is no such load.
func plannedEngine(plan *run.Plan, workload string, prefill bool) string {
	w, ok := plan.Workload(workload)
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
	planned := plannedEngine(c.Plan, w.Name, w.Prefill)
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
func (ev *evaluator) nameEngines(list []result.LoadSummary, plan json.RawMessage) {
	prefills := prefillEngines(plan)
	for i := range list {
		l := &list[i]
		if engine := prefills[l.Workload]; l.Prefill && engine != "" {
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

// prefillEngines reads from a plan what it chose for prefills. A plan that cannot be read is a caveat of its own.
func prefillEngines(plan json.RawMessage) map[string]string {
	var p struct {
		Workloads []struct {
			Name    string `json:"name"`
			Prefill *struct {
				Engine string `json:"engine"`
			} `json:"prefill"`
		} `json:"workloads"`
	}
	if json.Unmarshal(plan, &p) != nil {
		return nil
	}
	engines := map[string]string{}
	for _, w := range p.Workloads {
		if w.Prefill != nil {
			engines[w.Name] = w.Prefill.Engine
		}
	}
	return engines
}
