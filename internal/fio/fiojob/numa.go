package fiojob

import (
	"strings"
)

// Nodes defines on which memory nodes (NUMA) the threads of a job run and allocate memory. The zero value leaves both to
// the kernel.
type Nodes struct {
	CPUs    []int  // nodes whose CPUs the job may run on; nil: any
	CPUsAll bool   // all existing nodes
	Policy  string // of memory: "", "default", "prefer", "bind", "interleave", "local"
	Memory  []int  // nodes of the policy
	// MemoryAll: all existing nodes.
	MemoryAll bool
}

// NodesMax bounds the numbers of nodes, as in the kernel.
const NodesMax = 1024

var memoryNodes = []spec{
	{name: "numa_cpu_nodes", does: "NUMA nodes whose CPUs the job's threads run on: numbers and ranges, separated by commas, or all",
		apply: setCPUNodes},
	{name: "numa_mem_policy", does: "allocation of buffers: default, local, prefer:NODE, bind:NODES, interleave:NODES",
		apply: setMemoryPolicy},
}

func setCPUNodes(j *Job, a *arg) {
	if nodes, all, ok := nodeList(strings.TrimSpace(a.Text)); ok {
		j.Control.Nodes.CPUs, j.Control.Nodes.CPUsAll = nodes, all
		return
	}
	a.Bad("want numbers of memory nodes, such as 0-1,3, or all")
}

// nodeList reads "0-1,3" or "all".
func nodeList(text string) (nodes []int, all, ok bool) {
	if text == "all" {
		return nil, true, true
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	nodes, ok = numberRanges(parts, NodesMax)
	return nodes, false, ok && len(nodes) <= NodesMax
}

func setMemoryPolicy(j *Job, a *arg) {
	const want = "want default, local, prefer:NODE, bind:NODES or interleave:NODES, such as bind:0-1"
	name, list, has := strings.Cut(strings.TrimSpace(a.Text), ":")
	n := &j.Control.Nodes
	var nodes []int
	var all, ok bool
	switch name {
	case "default", "local":
		ok = !has
	case "prefer", "bind", "interleave":
		nodes, all, ok = nodeList(strings.TrimSpace(list))
		ok = ok && has && !(name == "prefer" && (all || len(nodes) != 1))
	default:
		ok = false
	}
	if !ok {
		a.Bad(want)
		return
	}
	n.Policy, n.Memory, n.MemoryAll = name, nodes, all
}
