package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

var ruleWaitWithoutStart = Rule{
	Code:     "wait-without-start",
	Severity: finding.Warning,
	Summary:  "A workload is waited for or stopped, and no earlier step starts it with async.",
	Doc:      "Either the start is missing, or it lacks async and has already ended.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		started := map[string]bool{}
		for _, c := range f.Calls {
			started[c.startsAsync()] = true
			if name := c.ends(); name != "" && !started[name] {
				out = append(out, finding.Finding{Subject: name, Pos: &c.Pos,
					Claim: fmt.Sprintf("%s: no earlier step starts %q with async.", c.Name, name)})
			}
		}
		return out
	},
}
