package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var serviceTimeOnly = rule.Rule{
	Code:    "service-time-only",
	Summary: "a rated workload has service times only",
	Doc: "This engine delays operations to keep a rate, and counts latency from their submission. While the target hangs, " +
		"operations wait without being counted, so that the latency of a stall is missing from every percentile: response time " +
		"is unknown. Expectations on latency are undecided.",
	Example:  `OLTP has a rate, but its engine (fio) counts latency from submission: response time is unknown.`,
	Check:    checkServiceTimeOnly,
	Flatters: true,
}

func checkServiceTimeOnly(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if l.Engine().Loop == interval.LoopPaced && timed(l) {
			list = append(list, in.About(l, finding.Info, "Use the native engine for response times under a rate.",
				"%s has a rate, but its engine (%s) counts latency from submission: response time is unknown.", in.Name(l), l.Engine().Name))
		}
	}
	return list
}
