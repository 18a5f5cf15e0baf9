package lint

import "github.com/braggdev/bragg/internal/finding"

const codeUnknownStep = "unknown-step" // of run.CheckCalls

var ruleUnknownStep = Rule{
	Code:     codeUnknownStep,
	Severity: finding.Fail,
	Summary:  "A phase has a step that does not exist.",
	Doc:      "A plan refuses it. The list of steps is in the guide.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, d := range f.faults {
			if d.Code == codeUnknownStep {
				out = append(out, fromDiagnostic(d))
			}
		}
		return out
	},
}
