package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

// startSkewNoticed is half an interval: with a larger skew the first second of a sum over VMs lacks some of them.
const startSkewNoticed = int64(500e6)

var startSkew = rule.Rule{
	Code:    "start-skew",
	Summary: "the VMs of a workload did not start together",
	Doc: "A load is prepared on all VMs and starts at one agreed moment, or staggered as the scenario says. Some VMs started later, " +
		"because their machine, the generator or the network was busy. Sums over VMs do not include all VMs in the first seconds.",
	Example: `Start skew of OLTP: 730 ms; OLTP-0003 started last.`,
	Check:   checkStartSkew,
}

func checkStartSkew(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventStarts || e.Prefill || e.SpanNanos < startSkewNoticed {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Workload, FromNanos: e.AtNanos, ToNanos: e.AtNanos,
			Claim:    fmt.Sprintf("Start skew of %s: %s; %s started last.", e.Workload, rule.Span(e.SpanNanos), e.Subject),
			Evidence: []string{e.Message},
			Advice:   "Exclude the first seconds from comparisons, or give the VMs and the controller more CPU.",
		})
	}
	return list
}
