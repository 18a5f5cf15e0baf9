package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

var ruleReadWithoutData = Rule{
	Code:     "read-without-data",
	Severity: finding.Warning,
	Summary:  "A workload reads unwritten disks.",
	Doc: "Most storage serves reads of unwritten data without disk I/O, so the numbers are too good. Prefill the data with " +
		"workload.PrefillRun.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		filled, told := map[string]bool{}, map[string]bool{}
		for _, c := range f.Calls {
			for _, g := range c.Groups {
				filled[g] = filled[g] || c.prefills() || c.Kind.RunsPrograms()
			}
			w, ok := f.Scenario.Workload(c.Effect.Starts())
			jobs, readable := f.Jobs(w)
			if !ok || !readable {
				continue
			}
			reads := slices.ContainsFunc(jobs, func(j fiojob.Job) bool {
				return slices.Contains(j.Directions(), fiojob.Read)
			})
			if reads && !filled[w.Group] && !told[w.Name] {
				told[w.Name] = true
				out = append(out, finding.Finding{Subject: w.Name, Pos: &c.Pos,
					Claim: fmt.Sprintf("%q reads unwritten disks of group %q.",
						w.Name, w.Group),
					Advice: "Add workload.PrefillRun for this workload to setup."})
			}
			writes := slices.ContainsFunc(jobs, func(j fiojob.Job) bool { return j.Writes() })
			filled[w.Group] = filled[w.Group] || writes
		}
		return out
	},
}
