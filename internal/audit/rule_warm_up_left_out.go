package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

var warmUpLeftOut = rule.Rule{
	Code:    "warm-up-left-out",
	Summary: "results leave out the warm-up of a workload, as the scenario or its job file says",
	Doc: "A result with warmup: auto counts a workload from when it was steady. What is not steady with the warm-up is why. A load whose jobs all " +
		"have a ramp_time counts no operations in it, and its results begin after it.",
	Example: `OLTP: its first 42 s are left out of Latency as warm-up: with them, the levels of its IOPS differ by 45 % of the mean (limit 20 %).`,
	Check: func(in *rule.Input) []finding.Finding {
		var list []finding.Finding
		for _, l := range rule.Measured(in) {
			w, titles := in.Summary.WarmUp(l)
			switch {
			case w == nil || w.ToNanos <= w.FromNanos:
			case w.Ramp:
				list = append(list, in.About(l, finding.Info, "", "%s: its first %s are left out of %s: its job file counts no operations in that time (ramp_time).",
					in.Name(l), rule.Span(w.ToNanos-w.FromNanos), titles))
			default:
				list = append(list, in.About(l, finding.Info, "", "%s: its first %s are left out of %s as warm-up: with them, %s.",
					in.Name(l), rule.Span(w.ToNanos-w.FromNanos), titles, w.Why))
			}
		}
		return list
	},
}
