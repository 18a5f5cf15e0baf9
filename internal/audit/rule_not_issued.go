package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

// notIssuedNoticed is the share of due operations from which percentiles are touched noticeably.
const notIssuedNoticed = 0.001

var notIssued = Rule{
	Code:    "not-issued",
	Summary: "operations were due by the rate of a workload and never issued",
	Documentation: "A workload with a rate has a moment for each operation. When the target falls far behind, operations " +
		"are dropped; they have no latency, so that the percentiles of those that ran are too good.",
	Example: `1,210 of 896,040 operations of OLTP that were due (0.14 %) were never issued.`,
	Check:   checkNotIssued,
}

func checkNotIssued(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		if l.NotIssued == 0 {
			continue
		}
		f := finding.Finding{Severity: finding.Info, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("%s of %s operations of %s that were due (%s) were never issued.",
				whole(l.NotIssued), whole(l.Due), in.name(l), share(l.NotIssued, l.Due)),
			Caveats: []string{"They have no latency; the percentiles of those that ran are too good."},
		}
		if float64(l.NotIssued) >= notIssuedNoticed*float64(l.Due) {
			f.Severity = finding.Warning
			f.Advice = "Lower the rate until all operations are issued, or read the result as the highest rate that the target can do."
		}
		list = append(list, f)
	}
	return list
}
