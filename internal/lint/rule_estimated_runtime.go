package lint

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

var ruleEstimatedRuntime = Rule{
	Code:     "estimated-runtime",
	Severity: finding.Warning,
	Summary:  "estimated_runtime is far from what the steps take.",
	Doc: "The rule adds up waits and loads with a runtime. Less than that is impossible, within a tenth; more than four times that, " +
		"and three hours on top for deploying and filling, is hard to believe.",
	Check: func(f *Facts) []finding.Finding {
		var total, most time.Duration
		endless := false // something may take any time
		for _, c := range f.Calls {
			d, known := c.Takes()
			total += d
			most += d
			if c.Name == "workload.Wait" {
				var runtime time.Duration
				runtime, known = longestRuntime(f, c.Text("workload_name"))
				most += runtime
			}
			endless = endless || !known && (c.Starts() || c.RunsPrograms() || c.Name == "workload.Wait" || c.Name == "meta.RollingUpgrade")
		}
		said := f.Scenario.EstimatedRuntime
		found := finding.Finding{Subject: "estimated_runtime", Pos: find(f, "estimated_runtime:")}
		switch {
		case said < total*9/10:
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads alone take %s.",
				unit.FormatDuration(said), unit.FormatDuration(total))
		case said > 4*most+3*time.Hour && !endless:
			found.Severity = finding.Info
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads take at most %s of it.",
				unit.FormatDuration(said), unit.FormatDuration(most))
		default:
			return nil
		}
		return []finding.Finding{found}
	},
}

// longestRuntime returns the runtime that a workload is started with; false when a start has none.
func longestRuntime(f *Facts, workload string) (longest time.Duration, known bool) {
	known = true
	for _, c := range f.Calls {
		if c.Starts() && c.Text("workload_name") == workload {
			d, ok := c.Seconds("runtime_secs")
			longest, known = max(longest, d), known && ok
		}
	}
	return longest, known
}
