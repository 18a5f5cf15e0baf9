package verb

import (
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/target"
)

// VMs lose their power with their node. Whether they restart by themselves depends on the platform, see target.Inventory: a
// plan that waits for VMs that stay off gets a warning, and a run does not wait for them.

// playNodes notes which VMs lose power with their nodes in a step, and which regain it.
func (v *View) playNodes(e Effect) {
	for _, i := range e.PowersOff {
		for _, g := range v.groups {
			if g.deployed && slices.Contains(g.nodes[:min(len(g.nodes), g.count)], i) {
				g.down[i] = true
			}
		}
	}
	for _, i := range e.PowersOn {
		for _, g := range v.groups {
			if v.Inventory.RestartsWithNode {
				delete(g.down, i)
			}
		}
	}
	if g := v.groups[e.Boots]; g != nil {
		clear(g.down)
	}
	for _, g := range v.groups {
		g.moved = g.moved || e.MovesAll && g.deployed
	}
	// VMs that were moved are not where the plan placed them.
	if g := v.groups[e.Changes]; g != nil && e.Boots == "" && e.Halts == "" {
		g.moved = true
	}
	if g := v.groups[e.Deploys]; g != nil {
		clear(g.down)
		g.moved = false
	}
}

// Stranded returns the names of the nodes whose power-off took down VMs of the group at this point of the plan, if the platform
// restarts none of these VMs. If that is unknown, because VMs were moved or branches run in parallel, it returns none.
func (v *View) Stranded(group string) []string {
	g := v.groups[group]
	if g == nil || g.moved || v.Unsure || v.Branch || v.Inventory.RestartsElsewhere {
		return nil
	}
	var names []string
	for _, i := range slices.Sorted(maps.Keys(g.down)) {
		names = append(names, v.Inventory.Nodes[i].Name)
	}
	return names
}

// Stranded returns the VMs that certainly stay off: this run switched their node off and not on again, or the node has power
// again but does not start them; and the platform does not start them on another node. It is meaningless while another branch may
// switch nodes.
func (e *Env) Stranded(vms []target.VM) []target.VM {
	t := e.Plan.Target
	if t.RestartsElsewhere || e.Step.Branch > 0 {
		return nil
	}
	off := map[string]bool{}
	for _, i := range e.Nodes.SwitchedOff() {
		off[t.Nodes[i].ID] = true
	}
	return slices.DeleteFunc(slices.Clone(vms), func(vm target.VM) bool {
		return !off[vm.NodeID] && (t.RestartsWithNode || vm.Power != target.PowerOff)
	})
}
