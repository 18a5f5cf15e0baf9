package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
)

var rulePowerLeftOff = Rule{
	Code:     "power-left-off",
	Severity: finding.Info,
	Summary:  "Nodes are powered off and no step powers them on again.",
	Doc: "The cleanup powers them on in any case. The report then shows no recovery, and teardown steps run while " +
		"nodes are missing.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if left := leftOff(f, c); len(left) > 0 {
				out = append(out, finding.Finding{Subject: c.Nodes, Pos: &c.Pos,
					Claim:  fmt.Sprintf("No step powers on the nodes %q again.", c.Nodes),
					Advice: "Add nodes.PowerOn to measure the recovery."})
			}
		}
		return out
	},
}

// leftOff returns the nodes that a step switches off and no later one switches on.
func leftOff(f *Facts, off Call) []int {
	left := slices.Clone(off.Effect.PowersOff)
	for _, c := range f.Calls[off.Index+1:] {
		left = slices.DeleteFunc(left, func(i int) bool { return slices.Contains(c.Effect.PowersOn, i) })
	}
	return left
}
