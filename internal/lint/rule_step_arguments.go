package lint

import "github.com/braggdev/bragg/internal/finding"

var ruleStepArguments = Rule{
	Code:     "step-arguments",
	Severity: finding.Fail,
	Summary:  "A step lacks an argument that it needs, has one that it does not know, or names what does not exist.",
	Doc:      "A plan refuses it.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, d := range f.faults {
			if d.Code != codeUnknownStep {
				out = append(out, fromDiagnostic(d))
			}
		}
		return out
	},
}
