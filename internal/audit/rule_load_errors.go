package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

var loadErrors = rule.Rule{
	Code:    "load-errors",
	Summary: "operations of a workload failed",
	Doc:     "A failed operation transferred no data. It is in no operation count and no latency, so a load that fails fast can look fast.",
	Example: `9 of 2,030,009 operations of OLTP failed (less than 0.01 %): 9 EIO.`,
	Check:   checkLoadErrors,
}

func checkLoadErrors(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for i := range in.Summary.Loads {
		l := &in.Summary.Loads[i]
		failed := l.Total.ErrorCount()
		if failed == 0 {
			continue
		}
		all := failed + l.Total.Operations
		var classes []string
		for _, c := range slices.Sorted(maps.Keys(l.Total.Errors)) {
			classes = append(classes, unit.FormatWhole(l.Total.Errors[c])+" "+c)
		}
		f := finding.Finding{Severity: finding.Warning, Share: float64(failed) / float64(all), Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim: fmt.Sprintf("%s of %s operations of %s failed (%s): %s.", unit.FormatWhole(failed), unit.FormatWhole(all), in.Name(l),
				rule.Share(failed, all), strings.Join(classes, ", "))}
		if t := l.Total.Failed; t != nil && t.Count() > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("the longest failed after %s", unit.FormatLatency(float64(t.Max()))))
		}
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			if s.Errors > 0 && len(f.Evidence) < evidenceMax {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s failed", s.VM, unit.FormatWhole(s.Errors)))
			}
		}
		list = append(list, f)
	}
	return list
}

// evidenceMax bounds the lines of evidence of one finding.
const evidenceMax = 10
