package machine

import (
	"net"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

var GeneratorOnTarget = rule.Rule{
	Code:    "generator-on-target",
	Summary: "load generator and storage share a machine",
	Doc: "The VMs of the target are processes on the machine that also runs the controller and has the disks. The load takes " +
		"CPU time, memory bandwidth and page cache from the storage that it measures. From 90 % of CPU time in the run phase, " +
		"both lacked it (severity warning).",
	Example: `The load ran on the machine that it measures, which used 94 % of its CPU time in the run phase.`,
	Check:   checkGeneratorOnTarget,
}

func checkGeneratorOnTarget(in *rule.Input) []finding.Finding {
	if !onThisMachine(in) || len(rule.Measured(in)) == 0 {
		return nil
	}
	f := finding.Finding{Severity: finding.Info, Claim: "The load ran on the machine that it measures.",
		Advice: "Compare only with runs on the same machine, and use hosts of their own for figures of a storage system."}
	if busy := numaBusy(in); len(busy) > 0 {
		used := stat.Mean(busy)
		f.Claim = "The load ran on the machine that it measures, which used " + unit.FormatWholePercent(used) + " of its CPU time in the run phase."
		if used >= cpuExhausted {
			f.Severity = finding.Warning
		}
	}
	return []finding.Finding{f}
}

// onThisMachine reports whether the nodes of the target are the machine of the controller.
func onThisMachine(in *rule.Input) bool {
	t := &in.KnownPlan().Target
	for _, n := range t.Nodes {
		if ip := net.ParseIP(n.Address); n.Address != "localhost" && (ip == nil || !ip.IsLoopback()) && t.Provider != "local" {
			return false
		}
	}
	return len(t.Nodes) > 0 && !in.Manifest.Target.Simulated
}
