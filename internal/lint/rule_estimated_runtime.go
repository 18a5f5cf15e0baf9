package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var ruleEstimatedRuntime = Rule{
	Code:     "estimated-runtime",
	Severity: finding.Warning,
	Summary:  "estimated_runtime is far from what the steps take.",
	Doc: "The rule adds up waits and loads with a runtime; of branches that run at once the longest counts. Less than that is impossible, within a tenth; more than four times that, " +
		"and three hours on top for deploying and filling, is hard to believe.",
	Check: func(f *Facts) []finding.Finding {
		total, said := f.Dry.End, f.Scenario.EstimatedRuntime
		found := finding.Finding{Subject: "estimated_runtime", Pos: find(f, "estimated_runtime:")}
		switch {
		case said < total*9/10:
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads alone take %s.",
				unit.FormatDuration(said), unit.FormatDuration(total))
		case said > 4*total+3*time.Hour && !slices.ContainsFunc(f.Calls, Call.endless):
			found.Severity = finding.Info
			found.Claim = fmt.Sprintf("estimated_runtime is %s, and waits and loads take at most %s of it.",
				unit.FormatDuration(said), unit.FormatDuration(total))
		default:
			return nil
		}
		return []finding.Finding{found}
	},
}

// endless tells whether a call may take any time: a load without a runtime, a program, or steps as many as the target has nodes.
func (c Call) endless() bool {
	span, _ := c.Span()
	return span == verb.SpanAny || c.Kind.RunsPrograms() || c.Kind.Expands()
}
