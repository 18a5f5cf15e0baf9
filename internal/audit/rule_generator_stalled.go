package audit

import (
	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// stallNoticed is the shortest single stall worth a finding: longer than a time slice of a busy scheduler.
	stallNoticed = int64(100e6)
	// stallShareNoticed and stallShareUndecided are shares of a workload's time, summed over its VMs.
	stallShareNoticed   = 0.01
	stallShareUndecided = 0.10
)

var generatorStalled = rule.Rule{
	Code:    "generator-stalled",
	Summary: "the load generator stalled",
	Doc: "The generator was stopped, or another program used its CPU. It submitted nothing in that time, so throughput is " +
		"too low and, with a rate, response times contain the stall. The measuring machine caused it, not the target. " +
		"Stalls of more than 10 % of the runtime make the run undecided.",
	Example: `The load generator of OLTP stalled for 2.3 s (4.1 % of its runtime), longest 2.1 s at 3:07 on OLTP-0001.`,
	Check:   checkGeneratorStalled,
}

func checkGeneratorStalled(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		var stalled, lasted int64
		var worst *digest.Stream
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			stalled += s.StalledNanos
			lasted += s.Lasted()
			if worst == nil || s.StallMaxNanos > worst.StallMaxNanos {
				worst = s
			}
		}
		if lasted <= 0 || stalled == 0 {
			continue
		}
		ratio := float64(stalled) / float64(lasted)
		if worst.StallMaxNanos < stallNoticed && ratio < stallShareNoticed {
			continue
		}
		f := in.About(l, finding.Warning, "Give the load generator more CPU, or run fewer VMs on its machine.",
			"The load generator of %s stalled for %s (%s of its runtime), longest %s at %s on %s.", in.Name(l), rule.Span(stalled),
			unit.FormatPercent(ratio), rule.Span(worst.StallMaxNanos), unit.FormatClock(worst.StallMaxAt), worst.VM)
		if f.Share = ratio; ratio >= stallShareUndecided {
			f.Severity = finding.Undecided
		}
		list = append(list, f)
	}
	return list
}
