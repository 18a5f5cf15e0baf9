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
	Summary:  "estimated_runtime differs widely from the duration of the steps.",
	Doc: "The rule sums waits and runtimes; of concurrent branches the longest counts. A value below 90 % of that sum is impossible; a value above four times the sum " +
		"plus three hours for deployment and prefill is implausible.",
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

// endless reports whether a call may take any time: a load without a runtime, a program, or as many steps as the target has
// nodes.
func (c Call) endless() bool {
	span, _ := c.Span()
	return span == verb.SpanAny || c.Kind.RunsPrograms() || c.Kind.Expands()
}
