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
	Summary:  "A workload names a generator that does not exist, gives it an option that it does not take, or names another engine than others.",
	Doc:      "A plan refuses it. All workloads with job files have one engine in a run; --engine chooses it for all.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return slices.Contains(generatorCodes, code) })
	},
}
