package lint

import (
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
)

var ruleTeardownCleanUp = Rule{
	Code:     "teardown-cleanup",
	Severity: finding.Info,
	Summary:  "The teardown does not remove the VMs of the scenario.",
	Doc:      "Bragg removes them at the end in any case. X-Ray keeps them without cluster.CleanUp.",
	Check: func(f *Facts) []finding.Finding {
		makes := slices.ContainsFunc(f.Calls, func(c Call) bool { return c.Effect.Deploys != "" })
		removes := slices.ContainsFunc(f.Calls, func(c Call) bool {
			return c.Phase == plan.Teardown && c.Effect.CleansUp
		})
		if !makes || removes {
			return nil
		}
		return []finding.Finding{{Subject: "teardown", Pos: find(f, "teardown:"),
			Claim: "The teardown does not remove the VMs of the scenario.", Advice: "Add cluster.CleanUp to teardown."}}
	},
}
