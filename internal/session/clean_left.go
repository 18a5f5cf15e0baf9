package session

import (
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
)

// leftOutside lists what prefills of a dead run may have left outside of its VMs, such as tables of an endpoint. Only the agents of the run could
// remove it, and they are dead. It is not known how far a prefill came, so that one that began counts until the run has recorded its removal.
func leftOutside(dir string, p *planner.Plan) ([]string, error) {
	if p == nil || !slices.ContainsFunc(p.Workloads, func(w plan.Workload) bool { return removes(w) != "" }) {
		return nil, nil
	}
	b, err := result.Open(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	began := map[string]bool{}
	for e, err := range b.Events() {
		if err != nil {
			return nil, err
		}
		switch {
		case e.Kind == interval.EventWorkloadStart && e.Prefill:
			began[e.Workload] = true
		case e.Kind == interval.EventRemoved:
			began[e.Workload] = false
		}
	}
	var left []string
	for _, w := range p.Workloads {
		if what := removes(w); what != "" && began[w.Name] && !slices.Contains(left, what) {
			left = append(left, what)
		}
	}
	return left, nil
}

func removes(w plan.Workload) string {
	if w.Prefill == nil {
		return ""
	}
	return w.Prefill.Removes
}
