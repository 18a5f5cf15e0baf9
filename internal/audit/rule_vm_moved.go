package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var vmMoved = Rule{
	Code:    "vm-moved",
	Summary: "a VM moved to another node, and no step of the run moved it",
	Documentation: "VMs stand where the scenario places them until a step moves them. One that moved by itself was restarted elsewhere after " +
		"a failure (HA), moved to even out load (DRS), or moved by somebody. From then on its load uses another node's processors, network and " +
		"local storage than the scenario says, beside other neighbours, and results of single nodes count it there. The target is asked every " +
		"half a minute, so the moment is known that well only. Where the run itself had switched off the node that the VM was on, the platform " +
		"did what it is for: that is told without a warning, and so is the way back to that node.",
	Example: `OLTP-0001 moved from host-1 to host-2 between 3:10 and 3:40, and no step moved it: from then on OLTP is not placed as the scenario says.`,
	Check:   checkVMMoved,
}

func checkVMMoved(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventPlaced || !e.Unasked {
			continue
		}
		earliest := max(0, e.AtNanos-e.SpanNanos)
		f := finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: earliest, ToNanos: e.AtNanos,
			Advice: "Pin the VMs, or switch off what moves them, and run again."}
		f.Claim = fmt.Sprintf("%s moved from %s to %s between %s and %s", e.Subject, in.node(e.From), in.node(e.Node), clock(earliest), clock(e.AtNanos))
		loads := in.loadsAfter(e.Group, earliest)
		switch {
		case e.AfterCut:
			f.Severity, f.Advice = finding.Info, "If VMs are to wait for their node, switch off their restart elsewhere, as with vm_group.DisableHA."
			f.Claim += ": the platform moved it, after the run had switched off one of the two"
			if len(loads) > 0 {
				f.Claim += "; from then on it ran " + strings.Join(loads, ", ") + " there."
			}
		default:
			f.Claim += ", and no step moved it"
			if len(loads) > 0 {
				f.Claim += fmt.Sprintf(": from then on %s placed as the scenario says.", areNot(loads))
			}
		}
		if len(loads) == 0 {
			f.Claim += "; its group had no load then."
		}
		list = append(list, f)
	}
	return list
}

func areNot(names []string) string {
	if len(names) == 1 {
		return names[0] + " is not"
	}
	return strings.Join(names, ", ") + " are not"
}

// loadsAfter names the workloads of a group that went on after a moment.
func (in *Input) loadsAfter(group string, atNanos int64) []string {
	var names []string
	for _, l := range measured(in) {
		if name := in.name(l); l.Group == group && l.ToNanos > atNanos && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// node returns the name of a node, its id where the plan does not know it.
func (in *Input) node(id string) string {
	for _, n := range in.plan().Target.Nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}
