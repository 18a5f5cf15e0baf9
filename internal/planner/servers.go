package planner

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// servers are those of a workload between two groups, nil for any other.
func (p *workloadPlan) servers() *plan.Servers {
	w := &p.scenario
	if w.ServerGroup == "" {
		if p.loadPlan != nil && p.loadPlan.InStep {
			return &plan.Servers{Group: w.Group, First: true}
		}
		return nil
	}
	return &plan.Servers{Group: w.ServerGroup, Mesh: w.Mesh, Same: w.ServerGroup == w.Group, Holds: p.kind.Servers == load.ServersMay}
}

// dataGroup is the group on whose disks the data of the workload is.
func (p *workloadPlan) dataGroup() string {
	w := plan.Workload{Group: p.scenario.Group, Servers: p.servers()}
	return w.DataGroup()
}

// checkServers reports a workload that names servers which its generator does not have, or lacks those that it needs.
func (c workloads) checkServers(p *workloadPlan) bool {
	if p.scenario.Group == "" { // an unknown group was reported
		return false
	}
	d := diag.Diagnostic{Code: "server-group", Severity: diag.SeverityError, Pos: p.scenario.Pos}
	switch named, servers := p.scenario.ServerGroup != "", p.kind.Servers; {
	case servers == load.ServersMay && p.scenario.Mesh:
		d.Message = fmt.Sprintf("workload %q: each client of generator %q has one server", p.scenario.Name, p.generator)
		d.Hint = "remove server_pairing: mesh"
	case servers == load.ServersMay && p.scenario.ServerGroup == p.scenario.Group:
		d.Message = fmt.Sprintf("workload %q: its servers would be on the VMs of its clients", p.scenario.Name)
		d.Hint = "remove server_group: without it, each VM has a server of its own"
	case servers == load.ServersMay, named == (servers == load.ServersMust):
		return true
	case named:
		d.Message = fmt.Sprintf("workload %q: generator %q has no servers on other VMs", p.scenario.Name, p.generator)
		d.Hint = "remove server_group"
	default:
		d.Message = fmt.Sprintf("workload %q: generator %q needs a server_group", p.scenario.Name, p.generator)
		d.Hint = "name the group whose VMs are its servers; it may be the same group"
	}
	c.problems.Add(d)
	return false
}

// checkAddresses reports that a target has no addresses for loads between groups, once for all of them.
func (c *binder) checkAddresses() {
	if slices.Contains(c.capabilities, target.CapAddresses) {
		return
	}
	var names []string
	for _, w := range c.sc.Workloads {
		if w.ServerGroup != "" {
			names = append(names, w.Name)
		}
	}
	if len(names) > 0 {
		c.problems.Add(diag.Diagnostic{Code: "lacks-capability", Severity: diag.SeverityError,
			Message: fmt.Sprintf("target %q cannot run %s, whose servers are on other VMs", c.inventory.Name, diag.Quoted(names, 5)),
			Hint:    fmt.Sprintf("the provider %q does not offer %q", c.inventory.Provider, target.CapAddresses)})
	}
}

// checkSteps reports loads whose VMs go in step where the target does not connect them, or there are too many.
func (c *binder) checkSteps() {
	for _, w := range c.sc.Workloads {
		p := c.plan.workloads[w.Name]
		if s := p.servers(); s == nil || !s.First || !p.load {
			continue
		}
		group, _ := c.plan.Group(w.Group)
		switch {
		case group.Count > load.PeersMax:
			c.problems.Errorf(w.Pos, "vms-in-step", "workload %q: %d VMs of group %q would go in step, and %d can", w.Name, group.Count, group.Name, load.PeersMax)
		case !slices.Contains(c.capabilities, target.CapAddresses):
			c.problems.Add(diag.Diagnostic{Code: "lacks-capability", Severity: diag.SeverityError, Pos: w.Pos,
				Message: fmt.Sprintf("target %q cannot run %q, whose VMs go in step", c.inventory.Name, w.Name),
				Hint:    fmt.Sprintf("the provider %q does not offer %q; use one VM", c.inventory.Provider, target.CapAddresses)})
		}
	}
}

// checkStarts reports steps that do not start all VMs of a load at once although these go in step.
func (c *binder) checkStarts() {
	var ignored diag.List
	v := c.newView(&ignored)
	c.walk(v, 1, func(i int, step verb.Step, _ bool) {
		l := v.Effect(step).Load
		if l == nil || l.Prefill || c.plan.workloads[l.Workload] == nil {
			return
		}
		s := c.plan.workloads[l.Workload].servers()
		group, _ := c.plan.Group(c.plan.workloads[l.Workload].scenario.Group)
		if s == nil || !s.First || group.Count < 2 {
			return
		}
		problems := &verb.Problems{List: &c.problems, Scenario: c.sc, Call: c.steps[i].Call}
		refuse := func(arg string) {
			problems.Hint(arg, "vms-in-step", fmt.Sprintf("remove %s, or use one VM", arg),
				fmt.Sprintf("%s does not go with %q, whose %d VMs go in step: none of them works before all have started", arg, l.Workload, group.Count))
		}
		if l.MaxConcurrent > 0 && l.MaxConcurrent < group.Count {
			refuse("max_concurrent")
		}
		if l.Staggered(group.Count, 1).Gap > 0 {
			refuse("stagger_secs")
		}
	})
}

// checkPairs reports loads with too few or too many VMs at the other end, once the groups are placed.
func (c workloads) checkPairs() {
	for _, w := range c.sc.Workloads {
		p := c.plan.workloads[w.Name]
		s := p.servers()
		if s == nil || s.First || !p.load {
			continue
		}
		group, _ := c.plan.Group(s.Group)
		switch n := len(s.Of(0, group.Count)); {
		case n == 0:
			c.problems.Errorf(w.Pos, "server-group", "workload %q: group %q has %d VMs, and no VM is its own server", w.Name, s.Group, group.Count)
		case n > load.PeersMax:
			c.problems.Errorf(w.Pos, "server-group", "workload %q: each VM would have %d servers, and %d are possible", w.Name, n, load.PeersMax)
		}
	}
}
