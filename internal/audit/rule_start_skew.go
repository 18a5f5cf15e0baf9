package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

// startSkewNoticed is half an interval: from there on, the first second of a sum over VMs is not that of all.
const startSkewNoticed = int64(500e6)

var startSkew = Rule{
	Code:    "start-skew",
	Summary: "the VMs of a workload did not start together",
	Documentation: "A load is prepared on all VMs and starts at one agreed moment, or at moments as far apart as the scenario says. Some VMs began later than " +
		"that: their machine or the generator's was busy, or the way to them slow. Sums over VMs of the first seconds are not those of all.",
	Example: `The VMs of OLTP began up to 730 ms apart; OLTP-0003 was the last.`,
	Check:   checkStartSkew,
}

func checkStartSkew(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventStarts || e.Prefill || e.SpanNanos < startSkewNoticed {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Workload, FromNanos: e.AtNanos, ToNanos: e.AtNanos,
			Claim:    fmt.Sprintf("The VMs of %s began up to %s apart; %s was the last.", e.Workload, span(e.SpanNanos), e.Subject),
			Evidence: []string{e.Message},
			Advice:   "Leave the first seconds out of comparisons, or give the VMs and the controller more CPU.",
		})
	}
	return list
}
