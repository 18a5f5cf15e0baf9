package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Reduction is one way in which a rehearsal is smaller than its scenario, and the groups that it applies to.
type Reduction struct {
	Of     string   // "bytes", "VMs", "vCPUs", "memory"
	Text   string   // "× 0.0039", "4 of 40"
	Factor float64  // of bytes
	Groups []string // sorted; empty: all groups of the run
}

// Reductions lists what a rehearsal scaled down besides times and nodes. Groups with the same factor share an entry.
func Reductions(r *result.Rehearsal) []Reduction {
	var list []Reduction
	add := func(group string, n Reduction) {
		at := slices.IndexFunc(list, func(o Reduction) bool { return o.Of == n.Of && o.Text == n.Text })
		if at < 0 {
			at, list = len(list), append(list, n)
		}
		list[at].Groups = append(list[at].Groups, group)
	}
	groups := map[string]bool{}
	for group := range r.Counts {
		groups[group] = true
	}
	for _, group := range slices.Sorted(maps.Keys(r.SizeFactor)) {
		if groups[group] = true; r.SizeFactor[group] != 1 {
			add(group, Reduction{Of: "bytes", Text: fmt.Sprintf("× %.3g", r.SizeFactor[group]), Factor: r.SizeFactor[group]})
		}
	}
	for _, group := range slices.Sorted(maps.Keys(r.Counts)) {
		if c := r.Counts[group]; c[0] != c[1] {
			add(group, Reduction{Of: "VMs", Text: fmt.Sprintf("%d of %d", c[1], c[0])})
		}
	}
	for _, group := range slices.Sorted(maps.Keys(r.VCPUs)) {
		add(group, Reduction{Of: "vCPUs", Text: fmt.Sprintf("%d of %d", r.VCPUs[group][1], r.VCPUs[group][0])})
	}
	for _, group := range slices.Sorted(maps.Keys(r.RAMBytes)) {
		add(group, Reduction{Of: "memory", Text: unit.FormatBytes(r.RAMBytes[group][1]) + " of " + unit.FormatBytes(r.RAMBytes[group][0])})
	}
	for i := range list {
		if len(groups) > 1 && len(list[i].Groups) == len(groups) {
			list[i].Groups = nil
		}
	}
	return list
}

// groupsNamed bounds the groups that a line names.
const groupsNamed = 3

// RehearsalLine says in one line how much smaller than its scenario a rehearsal is: "REHEARSAL of 1 m: times × 0.037, bytes × 0.00914".
func RehearsalLine(r *result.Rehearsal) string {
	text := fmt.Sprintf("REHEARSAL of %s: times × %.3g", unit.FormatDuration(r.Asked), r.TimeFactor)
	if r.Nodes[0] != r.Nodes[1] {
		text += fmt.Sprintf(", nodes: %d of %d", r.Nodes[1], r.Nodes[0])
	}
	for _, n := range Reductions(r) {
		text += ", " + n.Of
		switch {
		case n.Groups != nil:
			text += " of " + textio.Few(n.Groups, groupsNamed)
		case n.Of != "bytes":
			text += " of each group"
		}
		if n.Of != "bytes" {
			text += ":"
		}
		text += " " + n.Text
	}
	return text
}
