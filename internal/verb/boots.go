package verb

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
)

// Boot estimates how long the VMs of a group take from power-on until their agents answer; 0 if they are on.
func (v *View) Boot(group string) time.Duration {
	g := v.groups[group]
	if g == nil {
		return 0
	}
	nodes := g.placed(v.VMs(group))
	if g.on {
		for i := range nodes {
			if !g.down[i] {
				delete(nodes, i)
			}
		}
	}
	return v.boot(group, nodes)
}

// BootGrown estimates the same for the VMs that are added to a running group.
func (v *View) BootGrown(group string, scenarioCount int) time.Duration {
	g := v.groups[group]
	if g == nil || !g.on {
		return 0
	}
	after := *g
	after.count = scenarioCount
	count := scenarioCount
	if n, ok := v.Scaled[group][scenarioCount]; ok {
		count = n
	}
	nodes := after.placed(count)
	for i, before := range g.placed(v.VMs(group)) {
		nodes[i] -= before
	}
	return v.boot(group, nodes)
}

// placed returns how many of count VMs are on each node, by its index.
func (g *groupState) placed(count int) map[int]int {
	nodes := map[int]int{}
	for ordinal := range count {
		if len(g.nodes) > 0 {
			nodes[plan.Placement(ordinal, g.nodes)]++
		}
	}
	return nodes
}

// boot is the estimate for the given number of VMs on each node, which share its CPUs.
func (v *View) boot(group string, vms map[int]int) time.Duration {
	at := slices.IndexFunc(v.Scenario.Groups, func(g scenario.Group) bool { return g.Name == group })
	if at < 0 || !v.Boots {
		return 0
	}
	b := v.Inventory.Boots[v.Scenario.Groups[at].Template] // if unknown, they take no time
	var longest time.Duration
	for i, count := range vms {
		if count <= 0 {
			continue
		}
		longest = max(longest, b.Alone, time.Duration(count)*b.CPU/time.Duration(max(1, v.Inventory.Nodes[i].CPUs)))
	}
	return longest
}
