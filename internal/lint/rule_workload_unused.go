package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleWorkloadUnused = Rule{
	Code:     "workload-unused",
	Severity: finding.Warning,
	Summary:  "A workload is never started and never prefilled.",
	Doc:      "Either a step is missing, or the workload is obsolete.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, w := range f.Scenario.Workloads {
			if !slices.ContainsFunc(f.Calls, func(c Call) bool { return c.Workload == w.Name }) {
				out = append(out, finding.Finding{Subject: w.Name, Pos: &w.Pos,
					Claim: fmt.Sprintf("No step uses the workload %q.", w.Name)})
			}
		}
		return out
	},
}
