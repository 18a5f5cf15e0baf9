package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

var rulePlainPassword = Rule{
	Code:     "plain-password",
	Severity: finding.Info,
	Summary:  "A step has a password in plain text.",
	Doc: "Everybody who reads the scenario knows it. That is harmless for the public password of a VM image that has no other use. " +
		"Reports leave it out.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			for _, a := range c.Args {
				if a.Name == "remote_pass" && a.Value != nil {
					out = append(out, finding.Finding{Subject: c.Name, Pos: &a.Pos,
						Claim: fmt.Sprintf("%s has a password in plain text.", c.Name)})
				}
			}
		}
		return out
	},
}
