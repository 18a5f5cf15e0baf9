package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var ruleAsyncCutOff = Rule{
	Code:     "async-cut-off",
	Severity: finding.Warning,
	Summary:  "A workload started with async is neither waited for nor stopped, and the run phase ends before it.",
	Doc: "The end of the run phase cuts it off, and its errors go unnoticed. Add workload.Wait, or workload.Stop " +
		"for an early end.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if found, ok := cutOff(f, c); ok {
				out = append(out, found)
			}
		}
		return out
	},
}

// cutOff reports whether a load outlives the run phase. The steps after its start are timed as in a plan, so that a wait
// for another load counts.
func cutOff(f *Facts, start Call) (finding.Finding, bool) {
	name := start.startsAsync()
	if name == "" || start.Phase == plan.Teardown {
		return finding.Finding{}, false
	}
	sure := true
	for _, c := range f.Calls[start.Index+1:] {
		if c.Phase == plan.Teardown {
			break
		}
		if c.ends() == name || c.Effect.Starts() == name {
			return finding.Finding{}, false
		}
		span, _ := c.Span()
		sure = sure && span == verb.SpanTold
	}
	if len(start.Times) == 0 {
		return finding.Finding{}, false // the step is wrong, which another rule reports
	}
	last := start.Times[len(start.Times)-1]
	passed := max(0, f.Dry.RunEnd-last.Start-last.Length)
	runtime := start.Runtime()
	// The last VM starts when the stagger is over, which the step itself waits for.
	if runtime > 0 && passed >= runtime*98/100 {
		return finding.Finding{}, false
	}
	found := finding.Finding{Subject: name, Pos: &start.Pos, Advice: "Add workload.Wait or workload.Stop."}
	switch {
	case runtime == 0:
		found.Claim = fmt.Sprintf("%q is started with async and without runtime_secs, and nothing waits for it or stops it.", name)
	case sure:
		found.Claim = fmt.Sprintf("%q would run for %s, and the run phase ends %s after its start.",
			name, unit.FormatDuration(runtime), unit.FormatDuration(passed))
	default:
		found.Severity = finding.Info
		found.Claim = fmt.Sprintf("Nothing waits for the end of %q, which runs for %s; the steps after it take at least %s.",
			name, unit.FormatDuration(runtime), unit.FormatDuration(passed))
	}
	return found, true
}
