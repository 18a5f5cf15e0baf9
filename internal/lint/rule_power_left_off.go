package lint

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/scenario"
)

var rulePowerLeftOff = Rule{
	Code:     "power-left-off",
	Severity: finding.Info,
	Summary:  "Nodes are switched off and no step switches them on again.",
	Doc: "They are switched on at the end of the run in any case. The report then shows no recovery, and teardown steps meet a target " +
		"with nodes missing.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, c := range f.Calls {
			if c.Name != "nodes.PowerOff" && c.Name != "nodes.Shutdown" {
				continue
			}
			if left := leftOff(f, c); len(left) > 0 {
				out = append(out, finding.Finding{Subject: nodesText(c), Pos: &c.Pos,
					Claim:  fmt.Sprintf("No step switches the nodes %q on again.", nodesText(c)),
					Advice: "Add nodes.PowerOn if the recovery is to be seen."})
			}
		}
		return out
	},
}

// nodeCount stands for the target's nodes, which lint does not know. Slices such as n-1 mean the same on both sides.
const nodeCount = 16

// leftOff returns the nodes that a step switches off and no later one switches on.
func leftOff(f *Facts, off Call) []int {
	left := selected(off)
	for _, c := range f.Calls[off.Index+1:] {
		if c.Name == "nodes.PowerOn" {
			on := selected(c)
			left = slices.DeleteFunc(left, func(i int) bool { return slices.Contains(on, i) })
		}
	}
	return left
}

func selected(c Call) []int {
	indexes, err := scenario.SelectNodes(nodesText(c), nodeCount)
	if err != nil {
		return nil
	}
	return indexes
}

// nodesText returns the slice as it is written; a bare index is a number in YAML.
func nodesText(c Call) string {
	if v := c.argument("nodes"); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}
