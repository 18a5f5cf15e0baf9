package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

var FitsInHostMemory = rule.Rule{
	Code:    "fits-in-host-memory",
	Summary: "the data of a workload fits into the memory of its hosts",
	Doc: "On every node, the data that a workload uses in all its VMs is smaller than the node's memory. Reads without direct I/O of " +
		"VMs that are processes of the host come from its page cache (severity warning). Between a VM with virtual disks and the " +
		"medium, caches of the hypervisor or the storage controller may do the same, even with direct I/O (info).",
	Example:  `randread uses 12 GiB per node, which fit into its 64 GiB of memory: a cache of the host may serve its reads.`,
	Check:    checkFitsInHostMemory,
	Flatters: true,
}

func checkFitsInHostMemory(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		buffered := len(l.Jobs(func(j *load.JobPlan) bool { return j.Reads && !j.Direct })) > 0
		w, _ := in.KnownPlan().Workload(l.Workload)
		node, vms := in.KnownPlan().Fullest(w.DataGroup())
		data := int64(vms) * (extent.Bytes(l.Plan.Extents) - l.Plan.LogBytes)
		virtual := in.KnownPlan().Target.Hypervisor != ""
		if !l.Plan.Reads() || buffered == virtual || data <= 0 || data >= node.RAMBytes || in.Manifest.Target.Simulated {
			continue // buffered reads of virtual machines: cache-suspected compares with their memory
		}
		f := in.About(l.LoadSummary, finding.Info, "Use several times the memory of the hosts, unless a cache is what you measure.",
			"%s uses %s per node, which fit into its %s of memory: a cache of the host may serve its reads.", in.Name(l.LoadSummary),
			unit.FormatBytes(data), unit.FormatBytes(node.RAMBytes))
		if buffered {
			f.Severity = finding.Warning
		}
		list = append(list, f)
	}
	return list
}
