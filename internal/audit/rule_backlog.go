package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

// backlogSeconds is how much work may wait at the end of a load with a rate without being called a backlog.
const backlogSeconds = 1.0

var backlogAtEnd = Rule{
	Code:    "backlog-at-end",
	Summary: "operations were due and still waiting when a workload ended",
	Documentation: "The target was slower than the rate for so long that it had not caught up at the end. Response times " +
		"grow for as long as that lasts; had the run been longer, they would be worse. A mean response time of such a " +
		"run says nothing.",
	Example: `At the end of OLTP 18,200 operations were waiting, the work of 4.6 s at its rate.`,
	Check:   checkBacklog,
}

func checkBacklog(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		var waiting uint64
		for _, s := range in.Digest.of(l.Workload, l.Instance, l.Prefill) {
			waiting += s.BacklogEnd
		}
		rate := float64(l.Due) / (float64(max(1, l.ToNanos-l.FromNanos)) / 1e9)
		if waiting == 0 || l.Due == 0 || float64(waiting) < backlogSeconds*rate {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("At the end of %s %s operations were waiting, the work of %.3g s at its rate.",
				in.name(l), whole(waiting), float64(waiting)/rate),
			Advice: "Lower the rate: this target cannot keep it up.",
		})
	}
	return list
}
