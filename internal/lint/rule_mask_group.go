package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/scenario"
)

var ruleMaskGroup = Rule{
	Code:     "mask-group",
	Severity: finding.Warning,
	Summary:  "A result shows one group, cut to the time of a workload of another.",
	Doc:      "workload_mask only cuts the time; the traffic is that of vm_group. Often the group is meant to be the workload's.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			w, ok := f.Scenario.Workload(r.Mask)
			if !ok || r.Source != scenario.FromGroup || w.Group == r.Group {
				continue
			}
			out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
				Claim: fmt.Sprintf("Result %q shows group %q, cut to the time of %q, which runs on group %q.",
					r.Name, r.Group, w.Name, w.Group)})
		}
		return out
	},
}
