package lint

import (
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

// generatorCodes are those of run.CheckScenario.
var generatorCodes = []string{"unknown-generator", "bad-workload"}

var ruleGenerator = Rule{
	Code:     "generator",
	Severity: finding.Fail,
	Summary:  "A workload names a generator that does not exist, or gives it an option that it does not take.",
	Doc:      "A plan refuses it.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return slices.Contains(generatorCodes, code) })
	},
}
