package audit

import (
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var notSettled = rule.Rule{
	Code:    "not-settled",
	Summary: "a workload did not become steady although the scenario wants it to be",
	Doc:     "warmup: auto of a result or until: steady of a step asks for a steady load. Thresholds are undecided.",
	Example: `OLTP did not become steady within 30 m: its IOPS fell by 22 % (limit 10 %). Its thresholds are undecided.`,
	Check: func(in *rule.Input) []finding.Finding {
		const advice = "Give the load more time, or look at what changes it."
		var list []finding.Finding
		for _, l := range rule.Measured(in) {
			if w, titles := in.Summary.WarmUp(l); w != nil && !w.Steady {
				list = append(list, in.About(l, finding.Warning, advice, "%s. Thresholds of %s are undecided.", w.Why, titles))
			}
		}
		for _, e := range in.Events {
			reported := slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Subject == e.Workload })
			if e.Kind == interval.EventSteady && e.Error != "" && !reported {
				list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Workload, FromNanos: e.AtNanos - e.SpanNanos, ToNanos: e.AtNanos,
					Claim: e.Message + ". Its thresholds are undecided.", Advice: advice})
			}
		}
		return list
	},
}
