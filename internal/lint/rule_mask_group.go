package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/scenario"
)

var ruleMaskGroup = Rule{
	Code:     "mask-group",
	Severity: finding.Warning,
	Summary:  "workload_mask names a workload of another group.",
	Doc:      "workload_mask only limits the time; the traffic is that of vm_group. Usually vm_group should be the group of the workload.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			w, ok := f.Scenario.Workload(r.Mask)
			if !ok || r.Source != scenario.FromGroup || w.Group == r.Group {
				continue
			}
			out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
				Claim: fmt.Sprintf("Result %q shows group %q, limited to the time of workload %q, which runs on group %q.",
					r.Name, r.Group, w.Name, w.Group)})
		}
		return out
	},
}
