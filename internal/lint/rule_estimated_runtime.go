package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/unit"
)

var ruleEstimatedRuntime = Rule{
	Code:     "estimated-runtime",
	Severity: finding.Warning,
	Summary:  "estimated_runtime is far from what the steps take.",
	Doc: "The rule adds up waits and loads with a runtime; of branches that run at once the longest counts. Less than that is impossible, within a tenth; more than four times that, " +
		"and three hours on top for deploying and filling, is hard to believe.",
	Check: func(f *Facts) []finding.Finding {
		phases := slices.Concat(f.Scenario.Setup, f.Scenario.Run, f.Scenario.Teardown)
		total := f.takes(phases)
		said := f.Scenario.EstimatedRuntime
		found := finding.Finding{Subject: "estimated_runtime", Pos: find(f, "estimated_runtime:")}
		switch {
		case said < total.least*9/10:
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads alone take %s.",
				unit.FormatDuration(said), unit.FormatDuration(total.least))
		case said > 4*total.most+3*time.Hour && !total.endless:
			found.Severity = finding.Info
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads take at most %s of it.",
				unit.FormatDuration(said), unit.FormatDuration(total.most))
		default:
			return nil
		}
		return []finding.Finding{found}
	},
}

// extent is how long steps take.
type extent struct {
	least, most time.Duration
	endless     bool // something may take any time
}

// takes adds up steps that run one after the other.
func (f *Facts) takes(calls []scenario.Call) extent {
	var sum extent
	for _, c := range calls {
		one := f.takesOne(Call{Call: c})
		sum.least += one.least
		sum.most += one.most
		sum.endless = sum.endless || one.endless
	}
	return sum
}

func (f *Facts) takesOne(c Call) extent {
	switch c.Name {
	case "meta.Parallel":
		branches, _ := c.argument("branches").(scenario.Blocks)
		var longest extent
		for _, calls := range branches {
			one := f.takes(calls)
			longest.least, longest.most = max(longest.least, one.least), max(longest.most, one.most)
			longest.endless = longest.endless || one.endless
		}
		return longest
	case "meta.Repeat":
		return f.takesRepeated(c)
	}
	d, known := c.Takes()
	if c.Starts() {
		d, known = f.blocks(c)
	}
	one := extent{least: d, most: d}
	if c.Name == "workload.Wait" {
		var runtime time.Duration
		runtime, known = longestRuntime(f, c.Text("workload_name"))
		one.most += runtime
	}
	one.endless = !known && (c.Starts() || c.RunsPrograms() || c.Name == "workload.Wait" || c.Name == "meta.RollingUpgrade")
	return one
}

// takesRepeated: an iteration begins as long as the time is not over, and is carried to its end.
func (f *Facts) takesRepeated(c Call) extent {
	blocks, _ := c.argument("steps").(scenario.Blocks)
	var once extent
	for _, calls := range blocks {
		once = f.takes(calls)
	}
	count, counted := c.Number("count")
	length, timed := c.Seconds("duration_secs")
	all := extent{endless: once.endless,
		least: time.Duration(count * float64(once.least)), most: time.Duration(count * float64(once.most))}
	switch {
	case !counted:
		all.least, all.most = max(length, once.least), length+once.most
	case timed:
		all.least, all.most = max(min(all.least, length), once.least), min(all.most, length+once.most)
	}
	return all
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
