package plan

import (
	"fmt"

	"github.com/braggdev/bragg/internal/target"
)

// Placement distributes VMs 0 to count-1 over the nodes of a group, round robin.
func Placement(ordinal int, nodes []int) int { return nodes[ordinal%len(nodes)] }

// VMName returns a VM's name: the group's name with characters replaced that file or host names do not allow, and its number from
// 1.
func VMName(prefix string, ordinal int) string { return fmt.Sprintf("%s-%04d", prefix, ordinal+1) }

// CPUs is "8 vCPUs", with their topology if the scenario sets one.
func (g Group) CPUs() string {
	text := fmt.Sprintf("%d vCPUs", g.VCPUs)
	if g.Topology.Set() {
		text += " (" + g.Topology.String() + ")"
	}
	return text
}

// Specs returns the specifications of the VMs [from, to) of a group.
func (g Group) Specs(nodes []target.Node, from, to int) []target.VMSpec {
	var specs []target.VMSpec
	for i := from; i < to; i++ {
		spec := target.VMSpec{
			Name: VMName(g.Prefix, i), Group: g.Name, Ordinal: i, NodeID: nodes[Placement(i, g.NodeIndexes)].ID,
			Template: g.Template, VCPUs: g.VCPUs, Topology: g.Topology, RAMBytes: g.RAMBytes, ExporterPorts: g.ExporterPorts,
		}
		for _, d := range g.Disks {
			spec.DiskBytes = append(spec.DiskBytes, d.SizeBytes)
		}
		specs = append(specs, spec)
	}
	return specs
}
