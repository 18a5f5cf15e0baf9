package audit

import (
	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

// imbalanceFactor is how much more the fastest of equal VMs does than the slowest; schedulers and queues differ by less.
const imbalanceFactor = 1.5

var vmImbalance = rule.Rule{
	Code:    "vm-imbalance",
	Summary: "VMs with the same load have very different rates",
	Doc: "All VMs of a group run the same jobs as fast as they can, but one of them did more than 1.5 times the operations of " +
		"another. A sum or mean over VMs hides that: nodes, paths or disks are not equal, or an arbiter favours some of them.",
	Example: `randread is uneven: 12,400 IOPS on vm-0003, 5,100 IOPS on vm-0001.`,
	Check:   checkVmImbalance,
}

func checkVmImbalance(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		var least, most *digest.Stream
		rate := func(s *digest.Stream) float64 { return float64(s.Operations) / float64(s.Lasted()) * 1e9 }
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			if !s.Final || s.Lasted() < shortNanos {
				continue
			}
			if least == nil || rate(s) < rate(least) {
				least = s
			}
			if most == nil || rate(s) > rate(most) {
				most = s
			}
		}
		if l.Engine().Loop != interval.LoopClosed || least == nil || rate(most) < imbalanceFactor*rate(least) {
			continue
		}
		name := l.Engine().RateUnit()
		list = append(list, in.About(l, finding.Info, "Look at single VMs in the report, and compare the nodes that they run on.",
			"%s is uneven: %s %s on %s, %s %s on %s.", in.Name(l), unit.FormatWhole(uint64(rate(most))), name, most.VM,
			unit.FormatWhole(uint64(rate(least))), name, least.VM))
	}
	return list
}
