package lint

import "github.com/braggdev/bragg/internal/finding"

const codeBadQuery = "bad-query" // of planner.DryCompile

var ruleQuery = Rule{
	Code:     "query",
	Severity: finding.Fail,
	Summary:  "The query of a result is not valid PromQL, or its result is not numeric.",
	Doc:      "A plan refuses it. Macros are expanded before the query is parsed.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return code == codeBadQuery })
	},
}
