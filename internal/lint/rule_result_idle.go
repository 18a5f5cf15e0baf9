package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleResultIdle = Rule{
	Code:     "result-idle",
	Severity: finding.Warning,
	Summary:  "A result is about a workload that neither setup nor the run phase starts.",
	Doc:      "There is nothing to show. A workload of setup alone is shown while it ran there; prefills are not shown.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			for _, w := range []string{r.Workload, r.Mask} {
				if w == "" || starts(f, w) {
					continue
				}
				out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
					Claim: fmt.Sprintf("Result %q is about the workload %q, which neither setup nor run starts.", r.Name, w)})
			}
		}
		return out
	},
}

// starts tells whether setup or the run phase starts a workload, other than to prefill.
func starts(f *Facts, workload string) bool {
	return slices.ContainsFunc(f.Calls, func(c Call) bool {
		return c.Starts() && c.Text("workload_name") == workload && slices.Contains([]string{"setup", "run"}, c.Phase)
	})
}

// runsInRun tells whether a workload is started in the run phase, or runs into it from setup.
func runsInRun(f *Facts, workload string) bool {
	running := false
	for _, c := range f.Calls {
		if c.Text("workload_name") != workload {
			continue
		}
		switch {
		case c.Starts() && c.Phase == "run":
			return true
		case c.Starts() && c.Phase == "setup":
			running = c.Flag("async")
		case c.Phase == "setup" && slices.Contains([]string{"workload.Wait", "workload.Stop"}, c.Name):
			running = false
		}
	}
	return running
}
