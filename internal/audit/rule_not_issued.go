package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// notIssuedNoticed is the share of due operations from which percentiles change noticeably.
const notIssuedNoticed = 0.001

var notIssued = rule.Rule{
	Code:    "not-issued",
	Summary: "operations of a workload with a rate were dropped",
	Doc: "In a workload with a rate every operation has an intended start. When the target falls far behind, the generator " +
		"drops operations. Percentiles count them as slower than all that were issued; means and maxima leave them out.",
	Example:  `OLTP dropped 1,210 of 896,040 due operations (0.14 %).`,
	Check:    checkNotIssued,
	Flatters: true,
}

func checkNotIssued(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if l.NotIssued == 0 {
			continue
		}
		f := finding.Finding{Severity: finding.Info, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("%s dropped %s of %s due operations (%s).",
				in.Name(l), unit.FormatWhole(l.NotIssued), unit.FormatWhole(l.Due), rule.Share(l.NotIssued, l.Due)),
			Share:   float64(l.NotIssued) / float64(max(l.Due, 1)),
			Caveats: []string{"Percentiles count them as slower than all that were issued; means and maxima leave them out."},
		}
		if float64(l.NotIssued) >= notIssuedNoticed*float64(l.Due) {
			f.Severity = finding.Warning
			f.Advice = "Lower the rate until no operation is dropped, or take the result as the maximum throughput of the target."
		}
		list = append(list, f)
	}
	return list
}
