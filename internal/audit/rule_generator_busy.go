package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// busyCores is the CPU use of one VM's generator from which the generator may be the bottleneck. It applies if the CPU use of
	// single threads is unknown.
	busyCores = 0.9
	// saturatedShareNoticed is the share of a workload's time with a thread that was busy throughout.
	saturatedShareNoticed = 0.05
)

var generatorBusy = rule.Rule{
	Code:    "generator-cpu-bound",
	Summary: "a thread of a load generator was CPU-bound",
	Doc: "A CPU-bound generator measures itself: its CPU limits the throughput, and every latency contains its queue. An " +
		"interval counts when the busiest thread used 95 % of a CPU or more. Where the CPU use of single threads is " +
		"unknown, the rule uses the average CPU time of all threads. Loads that compute, such as sysbench cpu or STREAM, are left out: " +
		"their CPU time is what they measure.",
	Example: `The load generator of randread was CPU-bound in 58 % of its intervals on vm-0001; it may be the bottleneck, not the target.`,
	Check:   checkGeneratorBusy,
}

func checkGeneratorBusy(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if w, known := in.KnownPlan().Workload(l.Workload); known && w.Load != nil && w.Load.Computes {
			continue
		}
		var worst *digest.Stream
		busy := 0
		cores := func(s *digest.Stream) float64 { return float64(s.CPUNanos) / float64(max(1, s.Lasted())) }
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			saturated := float64(s.SaturatedNanos) >= saturatedShareNoticed*float64(s.Lasted())
			if s.EffortKnown && !saturated || !s.EffortKnown && cores(s) < busyCores || s.Lasted() < int64(1e9) {
				continue
			}
			busy++
			if worst == nil || s.SaturatedNanos > worst.SaturatedNanos || s.SaturatedNanos == worst.SaturatedNanos && cores(s) > cores(worst) {
				worst = s
			}
		}
		if worst == nil {
			continue
		}
		f := finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("The load generator of %s used %.2f CPU cores on %s; it may be the bottleneck, not the target.",
				in.Name(l), cores(worst), worst.VM),
			Evidence: []string{fmt.Sprintf("%s with %.1f cores or more", textio.Plural(busy, "VM"), busyCores)},
			Advice:   "Distribute the load over more jobs or VMs, or use larger blocks.",
		}
		if worst.EffortKnown {
			f.FromNanos, f.Share = worst.SaturatedAt, float64(worst.SaturatedNanos)/float64(worst.Lasted())
			f.Claim = fmt.Sprintf("The load generator of %s was CPU-bound in %s of its intervals on %s; it may be the bottleneck, not the target.",
				in.Name(l), unit.FormatPercent(f.Share), worst.VM)
			f.Evidence = []string{fmt.Sprintf("%s affected; %.2f CPU cores on average over all threads", textio.Plural(busy, "VM"), cores(worst))}
		}
		list = append(list, f)
	}
	return list
}
