package run

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Defaults of a VM group, as X-Ray has them.
const (
	vcpusDefault    = 2
	ramBytesDefault = 2048 << 20
	// GroupCountMax bounds the VMs of a group, as X-Ray does.
	GroupCountMax = 10_000
)

// placeGroup says on which nodes a group lies and how many VMs it begins with. No count means one VM per node.
func placeGroup(g scenario.Group, nodes int, problems *diag.List) *groupState {
	var indexes []int
	slice, err := scenario.ParseNodes(g.Nodes)
	if err != nil {
		problems.Errorf(g.Pos, "node-slice", "group %q: %v", g.Name, err)
	} else if indexes, err = slice.Select(nodes); err != nil {
		problems.Errorf(g.Pos, "node-range", "group %q: %v", g.Name, err)
	} else if len(indexes) == 0 {
		problems.Errorf(g.Pos, "node-range", "nodes %q of group %q select none of the target's %d nodes", g.Nodes, g.Name, nodes)
	}
	state := &groupState{nodes: indexes, count: len(indexes), down: map[int]bool{}}
	switch {
	case g.PerCluster > 0:
		state.count = g.PerCluster
	case g.PerNode > 0:
		state.count = g.PerNode * len(indexes)
	}
	if state.count > GroupCountMax {
		problems.Errorf(g.Pos, "group-size", "group %q has %d VMs, more than the bound of %d", g.Name, state.count, GroupCountMax)
	}
	return state
}

// placement deals VMs 0 to count-1 to the nodes of a group in turn.
func placement(ordinal int, nodes []int) int { return nodes[ordinal%len(nodes)] }

// deviceName returns the name of data disk i inside a VM: /dev/sdb, …, /dev/sdz, /dev/sdaa, ….
func deviceName(i int) string {
	i++ // sda is the system disk
	letters := ""
	for i >= 0 {
		letters = string(rune('a'+i%26)) + letters
		i = i/26 - 1
	}
	return "/dev/sd" + letters
}

// vmName returns a VM's name: the group's name with what no file or host name bears replaced, and its number from 1.
func vmName(prefix string, ordinal int) string { return fmt.Sprintf("%s-%04d", prefix, ordinal+1) }

// namePrefixes returns for each group the prefix of its VMs' names. Groups whose names differ only in replaced
// characters get a number behind it, so that no two VMs share a name.
func namePrefixes(groups []scenario.Group) map[string]string {
	prefixes, taken := map[string]string{}, map[string]bool{}
	for _, g := range groups {
		base := strings.Map(func(r rune) rune {
			if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, g.Name)
		prefix := base
		for n := 2; taken[strings.ToLower(prefix)]; n++ {
			prefix = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(prefix)] = true
		prefixes[g.Name] = prefix
	}
	return prefixes
}

// vmSpecs returns what to create for the VMs [from, to) of a planned group.
func vmSpecs(g plan.Group, nodes []target.Node, from, to int) []target.VMSpec {
	var specs []target.VMSpec
	for i := from; i < to; i++ {
		spec := target.VMSpec{
			Name: vmName(g.Prefix, i), Group: g.Name, Ordinal: i, NodeID: nodes[placement(i, g.NodeIndexes)].ID,
			Template: g.Template, VCPUs: g.VCPUs, RAMBytes: g.RAMBytes, ExporterPorts: g.ExporterPorts,
		}
		for _, d := range g.Disks {
			spec.DiskBytes = append(spec.DiskBytes, d.SizeBytes)
		}
		specs = append(specs, spec)
	}
	return specs
}
