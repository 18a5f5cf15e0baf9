package lint

import "github.com/braggdev/bragg/internal/finding"

const codeUnknownStep = "unknown-step" // of planner.DryCompile

var ruleUnknownStep = Rule{
	Code:     codeUnknownStep,
	Severity: finding.Fail,
	Summary:  "A phase has a step that does not exist.",
	Doc:      "A plan refuses it. The list of steps is in the guide.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return code == codeUnknownStep })
	},
}
