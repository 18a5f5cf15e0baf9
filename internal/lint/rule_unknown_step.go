package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
)

var ruleUnknownStep = Rule{
	Code:     "unknown-step",
	Severity: finding.Fail,
	Summary:  "A phase has a step that does not exist.",
	Doc:      "A plan refuses it. The list of steps is in the guide.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if _, ok := f.Catalog.Kind(c.Name); ok {
				continue
			}
			found := finding.Finding{Subject: c.Phase, Claim: fmt.Sprintf("There is no step %q.", c.Name), Pos: &c.Pos}
			if near := diag.Nearest(c.Name, f.Catalog.StepNames()); near != "" {
				found.Advice = fmt.Sprintf("Did you mean %s?", near)
			}
			out = append(out, found)
		}
		return out
	},
}
