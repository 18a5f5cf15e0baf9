package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
)

var ruleResultIdle = Rule{
	Code:     "result-idle",
	Severity: finding.Warning,
	Summary:  "A result shows a workload that is never started.",
	Doc:      "The result has no data. A workload of the setup phase is shown for that time; prefills are not shown.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, r := range f.Scenario.Results {
			for _, w := range []string{r.Workload, r.Mask} {
				if w == "" || starts(f, w) {
					continue
				}
				out = append(out, finding.Finding{Subject: r.Name, Pos: &r.Pos,
					Claim: fmt.Sprintf("Result %q shows the workload %q, which neither setup nor run starts.", r.Name, w)})
			}
		}
		return out
	},
}

// starts reports whether setup or the run phase starts a workload, other than to prefill.
func starts(f *Facts, workload string) bool {
	return slices.ContainsFunc(f.Calls, func(c Call) bool {
		return c.Effect.Starts() == workload && c.Phase != plan.Teardown
	})
}

// runsInRun reports whether a workload is started in the run phase, or runs into it from setup.
func runsInRun(f *Facts, workload string) bool {
	running := false
	for _, c := range f.Calls {
		switch {
		case c.Effect.Starts() == workload && c.Phase == plan.Run:
			return true
		case c.Effect.Starts() == workload && c.Phase == plan.Setup:
			running = c.Effect.Load.Async
		case c.ends() == workload && c.Phase == plan.Setup:
			running = false
		}
	}
	return running
}
