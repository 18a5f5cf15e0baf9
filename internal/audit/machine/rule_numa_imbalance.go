package machine

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

// CPU use of NUMA nodes is uneven from a factor and a distance, and a machine exhausted from a share of its CPU time.
const (
	numaFactor   = 1.5
	numaApart    = 0.2
	cpuExhausted = 0.9
)

var NumaImbalance = rule.Rule{
	Code:    "numa-imbalance",
	Summary: "the load used one NUMA node much more than another",
	Doc: "In the run phase, one NUMA node of the machine used more than 1.5 times the CPU time of another, and 20 points more. " +
		"Threads of the load wait for CPUs of the busy node, or reach the disk through the memory of the other one, and the " +
		"next run may place them differently. A database server that assigns connections to nodes in turn may serve all clients on " +
		"one node: that node is the limit, while the machine as a whole looks half idle.",
	Example: `CPU use of the NUMA nodes was uneven: 82 % on node 0, 11 % on node 1.`,
	Check:   checkNumaImbalance,
}

func checkNumaImbalance(in *rule.Input) []finding.Finding {
	busy := numaBusy(in)
	if len(busy) < 2 || !onThisMachine(in) {
		return nil
	}
	least, most := slices.Min(busy), slices.Max(busy)
	if most < numaFactor*least || most-least < numaApart {
		return nil
	}
	f := finding.Finding{Severity: finding.Warning,
		Claim: fmt.Sprintf("CPU use of the NUMA nodes was uneven: %s on node %d, %s on node %d.", unit.FormatWholePercent(most), slices.Index(busy, most),
			unit.FormatWholePercent(least), slices.Index(busy, least)),
		Advice: "Bind jobs with numa_cpu_nodes, or distribute the VMs evenly."}
	if most >= cpuExhausted {
		f.Evidence = []string{fmt.Sprintf("node %d had no CPU time left, and the machine used %s of its CPU time", slices.Index(busy, most),
			unit.FormatWholePercent(stat.Mean(busy)))}
		f.Advice += " Where a server assigns connections to nodes, look at which node has those of the clients."
	}
	return []finding.Finding{f}
}

// numaBusy returns the share of CPU time that each NUMA node used in the run phase; empty if unknown.
func numaBusy(in *rule.Input) []float64 {
	for _, e := range in.Events {
		if e.Kind == interval.EventUsage && e.Usage != nil && len(e.Usage.Busy) > 0 {
			return e.Usage.Busy
		}
	}
	return nil
}
