package lint

import "github.com/braggdev/bragg/internal/finding"

const (
	codeUnknownWindow = "unknown-window" // of planner.DryCompile, as the next
	codeUnknownEvent  = "unknown-event"
)

var ruleExpectWindow = Rule{
	Code:     "expect-window",
	Severity: finding.Fail,
	Summary:  "A threshold names a window or an event that does not exist.",
	Doc: "Windows are named after the steps around them, nodes as they are written: \"before Load\", \"between Load and nodes.PowerOff 0\". A plan " +
		"lists the names, and refuses others, because such a threshold can never be decided. Events have the names of the steps.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return code == codeUnknownWindow || code == codeUnknownEvent })
	},
}
