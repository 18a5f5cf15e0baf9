package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/run"
)

var ruleStepArguments = Rule{
	Code:     "step-arguments",
	Severity: finding.Fail,
	Summary:  "A step lacks an argument that it needs, has one that it does not know, or names what does not exist.",
	Doc:      "A plan refuses it.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if kind, ok := f.Catalog.Kind(c.Name); ok {
				out = append(out, checkArguments(f, c, kind.Arguments())...)
			}
		}
		return out
	},
}

func checkArguments(f *Facts, c Call, known []run.Argument) []finding.Finding {
	var out []finding.Finding
	var names []string
	for _, a := range known {
		names = append(names, a.Name)
		if a.Required && c.argument(a.Name) == nil {
			out = append(out, finding.Finding{Subject: c.Name, Pos: &c.Pos,
				Claim: fmt.Sprintf("%s needs the argument %s.", c.Name, a.Name)})
		}
	}
	for _, given := range c.Args {
		i := slices.Index(names, given.Name)
		if i < 0 {
			found := finding.Finding{Subject: c.Name, Pos: &given.Pos, Claim: fmt.Sprintf("%s has no argument %q.", c.Name, given.Name)}
			if near := diag.Nearest(given.Name, names); near != "" {
				found.Advice = fmt.Sprintf("Did you mean %s?", near)
			} else if len(names) > 0 {
				found.Advice = "It knows " + strings.Join(names, ", ") + "."
			}
			out = append(out, found)
			continue
		}
		name, isText := given.Value.(string)
		existing := referable(f, known[i].Refers)
		if !isText || name == "" || existing == nil || slices.Index(existing, name) >= 0 {
			continue
		}
		found := finding.Finding{Subject: c.Name, Pos: &given.ValuePos, Claim: fmt.Sprintf("%s: there is no %s %q.", c.Name, known[i].Refers, name)}
		if near := diag.Nearest(name, existing); near != "" {
			found.Advice = fmt.Sprintf("Did you mean %s?", near)
		}
		out = append(out, found)
	}
	return out
}

// referable lists what an argument may name; nil means that lint cannot tell.
func referable(f *Facts, what string) []string {
	names := []string{}
	switch what {
	case "group":
		for _, g := range f.Scenario.Groups {
			names = append(names, g.Name)
		}
		return names
	case "workload":
		for _, w := range f.Scenario.Workloads {
			names = append(names, w.Name)
		}
		return names
	}
	return nil
}
