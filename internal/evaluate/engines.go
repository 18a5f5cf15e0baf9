package evaluate

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// setEngines replaces the planned engine of each roll-up by the actual ones. VMs that reported no other engine ran as planned.
func (ev *evaluator) setEngines(list []result.LoadSummary) {
	for i := range list {
		l := &list[i]
		if engine := ev.plan.Engine(l.Workload, true); l.Prefill && !engine.IsZero() {
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
