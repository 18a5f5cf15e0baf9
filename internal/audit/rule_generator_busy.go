package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

// busyCores is the CPU use of one VM's generator from which the generator, not the target, may be the limit. A job of
// the native engine uses one thread, so that one whole core is its limit.
const busyCores = 0.9

var generatorBusy = Rule{
	Code:    "generator-cpu-bound",
	Summary: "a load generator used about a whole CPU core",
	Documentation: "A generator that is busy all the time measures itself: throughput is limited by its CPU, and every " +
		"latency contains its queue.",
	Example: `The generator of randread used 0.98 CPU cores on vm-0001; it may be the limit, not the target.`,
	Check:   checkGeneratorBusy,
}

func checkGeneratorBusy(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		var worst *Stream
		busy := 0
		cores := func(s *Stream) float64 { return float64(s.CPUNanos) / float64(max(1, s.lasted())) }
		for _, s := range in.Digest.of(l.Workload, l.Instance, l.Prefill) {
			if cores(s) < busyCores || s.lasted() < int64(1e9) {
				continue
			}
			busy++
			if worst == nil || cores(s) > cores(worst) {
				worst = s
			}
		}
		if worst == nil {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("The generator of %s used %.2f CPU cores on %s; it may be the limit, not the target.",
				in.name(l), cores(worst), worst.VM),
			Evidence: []string{fmt.Sprintf("%s with %.1f cores or more", plural(busy, "VM"), busyCores)},
			Advice:   "Spread the load over more jobs or VMs, or use larger blocks.",
		})
	}
	return list
}
