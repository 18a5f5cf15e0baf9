package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// backlogSeconds is the smallest backlog that is reported, in seconds of work at the rate of the load.
const backlogSeconds = 1.0

var backlogAtEnd = rule.Rule{
	Code:    "backlog-at-end",
	Summary: "a workload ended with a backlog of due operations",
	Doc: "The target was slower than the requested rate and had not caught up when the workload ended. Response times grow " +
		"as long as this lasts; a longer run would show worse ones. The mean response time of such a run is meaningless.",
	Example: `OLTP ended with a backlog of 18,200 operations (4.6 s of work at its rate).`,
	Check:   checkBacklog,
}

func checkBacklog(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		var waiting uint64
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			waiting += s.BacklogEnd
		}
		rate := float64(l.Due) / (float64(max(1, l.ToNanos-l.FromNanos)) / 1e9)
		if waiting == 0 || l.Due == 0 || float64(waiting) < backlogSeconds*rate {
			continue
		}
		list = append(list, in.About(l, finding.Warning, "Lower the rate: this target cannot sustain it.",
			"%s ended with a backlog of %s operations (%s of work at its rate).", in.Name(l), unit.FormatWhole(waiting),
			rule.Span(int64(1e9*float64(waiting)/rate))))
	}
	return list
}
