package step

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// agentNeeds are the capabilities of steps that drive load.
var agentNeeds = []target.Capability{target.CapAgents}

// value returns what p points to, 0 for nil.
func value(p *time.Duration) time.Duration {
	if p == nil {
		return 0
	}
	return *p
}

func checkNotNegative(problems *verb.Problems, name string, d *time.Duration) {
	if d != nil && *d < 0 {
		problems.Errorf(name, "argument-range", "%s must not be negative", name)
	}
}

// checkWorkloadReady reports a workload whose group has no VM yet, or whose VMs are off.
func checkWorkloadReady(workload string, v *verb.View, problems *verb.Problems) {
	w, ok := v.Scenario.Workload(workload)
	switch {
	case !ok:
	case !v.Deployed(w.Group):
		problems.Errorf("workload_name", "not-deployed",
			"group %q of workload %q has no VM here: no vm_group.CloneFromTemplate comes before", w.Group, workload)
	case !v.PoweredOn(w.Group):
		notPoweredOn("workload_name", fmt.Sprintf("group %q of workload %q", w.Group, workload), problems)
	case w.ServerGroup != "" && !v.Deployed(w.ServerGroup):
		problems.Errorf("workload_name", "not-deployed",
			"server_group %q of workload %q has no VM here: no vm_group.CloneFromTemplate comes before", w.ServerGroup, workload)
	case w.ServerGroup != "" && !v.PoweredOn(w.ServerGroup):
		notPoweredOn("workload_name", fmt.Sprintf("server_group %q of workload %q", w.ServerGroup, workload), problems)
	}
}

// checkStarted reports a wait for a load that no earlier step started.
func checkStarted(workload string, prefill bool, v *verb.View, problems *verb.Problems) {
	if workload == "" || v.Started(workload, prefill) {
		return
	}
	what, step := "workload", "workload.Start"
	if prefill {
		what, step = "prefill of workload", "workload.PrefillStart"
	}
	problems.Errorf("workload_name", "not-started", "%s %q is not running here: no %s comes before", what, workload, step)
}
