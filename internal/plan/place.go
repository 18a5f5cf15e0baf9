package plan

import (
	"fmt"

	"github.com/braggdev/bragg/internal/target"
)

// Placement deals VMs 0 to count-1 to the nodes of a group in turn.
func Placement(ordinal int, nodes []int) int { return nodes[ordinal%len(nodes)] }

// VMName returns a VM's name: the group's name with what no file or host name bears replaced, and its number from 1.
func VMName(prefix string, ordinal int) string { return fmt.Sprintf("%s-%04d", prefix, ordinal+1) }

// Specs returns what to create for the VMs [from, to) of a group.
func (g Group) Specs(nodes []target.Node, from, to int) []target.VMSpec {
	var specs []target.VMSpec
	for i := from; i < to; i++ {
		spec := target.VMSpec{
			Name: VMName(g.Prefix, i), Group: g.Name, Ordinal: i, NodeID: nodes[Placement(i, g.NodeIndexes)].ID,
			Template: g.Template, VCPUs: g.VCPUs, RAMBytes: g.RAMBytes, ExporterPorts: g.ExporterPorts,
		}
		for _, d := range g.Disks {
			spec.DiskBytes = append(spec.DiskBytes, d.SizeBytes)
		}
		specs = append(specs, spec)
	}
	return specs
}
