package planner

import (
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// rehearsalRAMBytesMin is enough for a small Linux guest with an agent. Groups that request less keep their value.
const rehearsalRAMBytesMin = 512 << 20

// rehearseVMs gives the VMs of a rehearsal at most as many vCPUs as their nodes have CPUs, and at most their share of the node's
// memory: a scenario that was written for servers can then be tried on a laptop, unchanged. Full runs are refused instead,
// because a smaller VM is another test.
func (c rehearsing) rehearseVMs() {
	if c.options.Rehearse == 0 || c.inventory.Overcommits {
		return
	}
	r := c.rehearsal()
	factor := c.rehearsalRAMFactor()
	for i := range c.plan.Groups {
		g := &c.plan.Groups[i]
		vcpus, ram := g.VCPUs, g.RAMBytes
		for _, n := range nodesOf(*g, c.inventory.Nodes) {
			if n.CPUs > 0 {
				g.VCPUs = min(g.VCPUs, n.CPUs)
			}
		}
		if factor < 1 {
			short := int64(float64(ram)*factor) / diskStep * diskStep
			g.RAMBytes = min(ram, max(short, rehearsalRAMBytesMin))
		}
		if vcpus != g.VCPUs {
			r.VCPUs[g.Name] = [2]int{vcpus, g.VCPUs}
			g.Topology = target.Topology{} // its CPUs would not fit it
		}
		if ram != g.RAMBytes {
			r.RAMBytes[g.Name] = [2]int64{ram, g.RAMBytes}
		}
	}
}

// rehearsalRAMFactor is the common factor with which the VMs of every node fit its memory; 1 if they fit unchanged.
func (c rehearsing) rehearsalRAMFactor() float64 {
	asked := map[string]int64{}
	for _, g := range c.plan.Groups {
		for _, vm := range g.VMs {
			asked[vm.NodeID] += g.RAMBytes
		}
	}
	factor := 1.0
	for _, n := range c.inventory.Nodes {
		if limit := n.RAMBytes / 100 * memoryPercentMax; limit > 0 && asked[n.ID] > limit {
			factor = min(factor, float64(limit)/float64(asked[n.ID]))
		}
	}
	return factor
}

// nodesOf returns the nodes on which VMs of a group start.
func nodesOf(g plan.Group, all []target.Node) []target.Node {
	used := map[string]bool{}
	for _, vm := range g.VMs {
		used[vm.NodeID] = true
	}
	var nodes []target.Node
	for _, n := range all {
		if used[n.ID] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
