package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleGroupUnused = Rule{
	Code:     "group-unused",
	Severity: finding.Warning,
	Summary:  "A VM group is never deployed.",
	Doc:      "No step creates its VMs, so nothing can run on them. Add vm_group.CloneFromTemplate.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, g := range f.Scenario.Groups {
			deployed := slices.ContainsFunc(f.Calls, func(c Call) bool {
				return c.Effect.Deploys == g.Name
			})
			if !deployed {
				out = append(out, finding.Finding{Subject: g.Name, Pos: &g.Pos,
					Claim:  fmt.Sprintf("No step deploys the VM group %q.", g.Name),
					Advice: "Add vm_group.CloneFromTemplate to setup."})
			}
		}
		return out
	},
}
