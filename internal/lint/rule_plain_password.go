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
	Doc: "Every reader of the scenario can see it. The finding names the first such step. The rule ignores the public password of " +
		"X-Ray's VM images. Reports omit passwords.",
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

// secret reports whether an argument is never printed.
func (c Call) secret(argument string) bool {
	return c.Kind.New != nil && slices.ContainsFunc(c.Kind.Arguments(), func(a verb.Argument) bool { return a.Name == argument && a.Secret })
}
