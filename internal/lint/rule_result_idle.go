package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleResultIdle = Rule{
	Code:     "result-idle",
	Severity: finding.Warning,
	Summary:  "A result is about a workload that does not run in the run phase.",
	Doc:      "Results show the run phase. The chart will be empty.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			for _, w := range []string{r.Workload, r.Mask} {
				if w == "" || runsInRun(f, w) {
					continue
				}
				out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
					Claim: fmt.Sprintf("Result %q is about the workload %q, which does not run in the run phase.", r.Name, w)})
			}
		}
		return out
	},
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
