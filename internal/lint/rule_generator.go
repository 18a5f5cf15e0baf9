package lint

import (
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

// generatorCodes are those of planner.DryCompile.
var generatorCodes = []string{"unknown-generator", "bad-workload", "two-engines"}

var ruleGenerator = Rule{
	Code:     "generator",
	Severity: finding.Fail,
	Summary:  "A workload names a generator that does not exist, gives it an unknown option, or names a different engine than other workloads.",
	Doc:      "A plan refuses it. All job files of a run use one engine; --engine sets it for all.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return slices.Contains(generatorCodes, code) })
	},
}
