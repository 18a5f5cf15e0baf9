package lint

import (
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleStepArguments = Rule{
	Code:     "step-arguments",
	Severity: finding.Fail,
	Summary: "A step has a missing or unknown argument, an unknown name, or an invalid value: a negative time, a group " +
		"without VMs, a load on VMs that no step powers on.",
	Doc: "A plan refuses it.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool {
			return code != codeUnknownStep && code != codeUnknownWindow && code != codeBadQuery && !slices.Contains(generatorCodes, code) &&
				code != codeTimeoutWithAsync
		})
	},
}
