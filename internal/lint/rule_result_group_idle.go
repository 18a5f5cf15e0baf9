package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
)

var ruleResultGroupIdle = Rule{
	Code:     "result-group-idle",
	Severity: finding.Warning,
	Summary:  "A result shows a group without load in the run phase.",
	Doc:      "The chart will be empty or zero. Name the group that runs the load.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			if r.Source != scenario.FromGroup || r.Group == "" || groupBusy(f, r.Group) {
				continue
			}
			out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
				Claim: fmt.Sprintf("Result %q shows the traffic of group %q, which has no load in the run phase.", r.Name, r.Group)})
		}
		return out
	},
}

func groupBusy(f *Facts, group string) bool {
	for _, w := range f.Scenario.Workloads {
		if w.Group == group && runsInRun(f, w.Name) {
			return true
		}
	}
	return slices.ContainsFunc(f.Calls, func(c Call) bool {
		return c.Phase == plan.Run && (c.Kind.RunsPrograms() || c.prefills()) && slices.Contains(c.Groups, group)
	})
}
