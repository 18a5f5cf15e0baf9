package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleTimeoutWithAsync = Rule{
	Code:     "timeout-with-async",
	Severity: finding.Fail,
	Summary:  "A workload is started with async and timeout_secs.",
	Doc:      "Nothing waits there, so nothing can time out, and a plan refuses it. Give the time to workload.Wait.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if c.Starts() && c.Flag("async") && c.argument("timeout_secs") != nil {
				out = append(out, finding.Finding{Subject: c.Text("workload_name"), Pos: &c.Pos,
					Claim: fmt.Sprintf("%q is started with async and timeout_secs, which exclude each other.",
						c.Text("workload_name")),
					Advice: "Give timeout_secs to workload.Wait."})
			}
		}
		return out
	},
}
