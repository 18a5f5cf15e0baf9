package lint

import "github.com/braggdev/bragg/internal/finding"

const codeTimeoutWithAsync = "timeout-with-async" // of planner.DryCompile

var ruleTimeoutWithAsync = Rule{
	Code:     codeTimeoutWithAsync,
	Severity: finding.Fail,
	Summary:  "A workload is started with async and timeout_secs.",
	Doc:      "An asynchronous start does not wait, so it cannot time out; a plan refuses it. Set the timeout of workload.Wait.",
	Check: func(f *Facts) []finding.Finding {
		return f.faultsWith(func(code string) bool { return code == codeTimeoutWithAsync })
	},
}
