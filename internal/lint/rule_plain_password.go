package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/verb"
)

var rulePlainPassword = Rule{
	Code:     "plain-password",
	Severity: finding.Info,
	Summary:  "A step has a password in plain text.",
	Doc: "Everybody who reads the scenario knows it. The first step that has one is named. The public password of X-Ray's VM images, " +
		"which has no other use, is left alone. Reports leave passwords out.",
	Check: func(f *Facts) []finding.Finding {
		var steps []finding.Finding
		for _, c := range f.Calls {
			for _, a := range c.Args {
				if password, ok := a.Value.(string); c.secret(a.Name) && a.Value != nil && !(ok && password == publicPassword) {
					steps = append(steps, finding.Finding{Subject: c.Name, Pos: &a.Pos,
						Claim: fmt.Sprintf("%s has a password in plain text.", c.Name)})
				}
			}
		}
		if len(steps) > 1 {
			steps[0].Evidence = []string{fmt.Sprintf("and %d more", len(steps)-1)}
			steps = steps[:1]
		}
		return steps
	},
}

// publicPassword is the documented password of the user nutanix on X-Ray's VM images.
const publicPassword = "nutanix/4u"

// secret tells whether an argument is never printed.
func (c Call) secret(argument string) bool {
	return c.Kind.New != nil && slices.ContainsFunc(c.Kind.Arguments(), func(a verb.Argument) bool { return a.Name == argument && a.Secret })
}
