package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

// Boot estimates how long the VMs of a group take from power-on until their agents answer; 0 where they are on.
func (v *View) Boot(group string) time.Duration {
	g := v.groups[group]
	if g == nil {
		return 0
	}
	nodes := v.placed(g, v.vms(group))
	if g.on {
		for i := range nodes {
			if !g.down[i] {
				delete(nodes, i)
			}
		}
	}
	return v.boot(group, nodes)
}

// BootGrown estimates the same for the VMs that a group, once it is on, grows by.
func (v *View) BootGrown(group string, scenarioCount int) time.Duration {
	g := v.groups[group]
	if g == nil || !g.on {
		return 0
	}
	after := *g
	after.count = scenarioCount
	count := scenarioCount
	if n, ok := v.scaled[group][scenarioCount]; ok {
		count = n
	}
	nodes := v.placed(&after, count)
	for i, before := range v.placed(g, v.vms(group)) {
		nodes[i] -= before
	}
	return v.boot(group, nodes)
}

// placed returns how many of so many VMs lie on which node, by its index.
func (v *View) placed(g *groupState, count int) map[int]int {
	nodes := map[int]int{}
	for ordinal := range count {
		if len(g.nodes) > 0 {
			nodes[placement(ordinal, g.nodes)]++
		}
	}
	return nodes
}

// boot is for so many VMs on each node: they share its processors.
func (v *View) boot(group string, vms map[int]int) time.Duration {
	b, ok := v.bootOf(group)
	if !ok {
		return 0
	}
	var longest time.Duration
	for i, count := range vms {
		if count <= 0 {
			continue
		}
		longest = max(longest, b.Alone, time.Duration(count)*b.CPU/time.Duration(max(1, v.Inventory.Nodes[i].CPUs)))
	}
	return longest
}

func (v *View) bootOf(group string) (target.Boot, bool) {
	i := slices.IndexFunc(v.Scenario.Groups, func(g scenario.Group) bool { return g.Name == group })
	if i < 0 || !v.boots {
		return target.Boot{}, false
	}
	b, ok := v.Inventory.Boots[v.Scenario.Groups[i].Template]
	return b, ok
}

// bootBasis says what the estimate of boots rests on; "" where nothing boots.
func (c *compiler) bootBasis() string {
	var said []string
	for _, g := range c.plan.Groups {
		b, ok := c.inventory.Boots[g.Template]
		if !ok || g.CountFinal == 0 {
			continue
		}
		text := fmt.Sprintf("%s (%s)", unit.FormatDuration(b.Alone), b.Basis)
		if b.CPU > 0 {
			text = fmt.Sprintf("%s and %s of a processor (%s)", unit.FormatDuration(b.Alone), unit.FormatDuration(b.CPU), b.Basis)
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, ", ")
}
