package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var vmMoved = rule.Rule{
	Code:    "vm-moved",
	Summary: "a VM moved to another node without a step of the run",
	Doc: "A VM stays on the node where the scenario places it until a step moves it. This one was restarted on another " +
		"node after a failure (HA), moved by load balancing (DRS), or moved by an administrator. From then on its load " +
		"uses the CPUs, network and local storage of another node, and per-node results count it there. Bragg polls the " +
		"placement every 30 seconds, and at once where the platform reports the move: the claim then quotes it. A move after the run took the " +
		"VM's node out of use is expected, and so is the move back: its severity is info.",
	Example: `OLTP-0001 moved from host-1 to host-2 between 3:10 and 3:40 without a step of the run. The placement of OLTP differs from the scenario from then on.`,
	Check:   checkVMMoved,
}

func checkVMMoved(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventPlaced || !e.Unasked {
			continue
		}
		earliest := max(0, e.AtNanos-e.SpanNanos)
		f := finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: earliest, ToNanos: e.AtNanos,
			Advice: "Pin the VMs or disable automatic migration (HA, DRS), then repeat the run."}
		f.Claim = fmt.Sprintf("%s moved from %s to %s between %s and %s", e.Subject, nodeName(in, e.From), nodeName(in, e.Node), unit.FormatClock(earliest),
			unit.FormatClock(e.AtNanos))
		loads := loadsAfter(in, e.Group, earliest)
		switch {
		case e.AfterCut:
			f.Severity, f.Advice = finding.Info, "To keep VMs on their node, disable HA for them, as with vm_group.DisableHA."
			f.Claim += " after the run took one of the two nodes out of use"
			if len(loads) > 0 {
				f.Claim += ". From then on it ran " + strings.Join(loads, ", ") + " there."
			}
		default:
			f.Claim += " without a step of the run"
			if len(loads) > 0 {
				f.Claim += fmt.Sprintf(". The placement of %s differs from the scenario from then on.", strings.Join(loads, ", "))
			}
		}
		if len(loads) == 0 {
			f.Claim += ". Its group had no load at that time."
		}
		if said := reportOf(in, e.Subject, earliest, e.AtNanos); said != "" {
			f.Claim += " The platform reports: " + said
		}
		list = append(list, f)
	}
	return list
}

// reportOf returns what the platform reported about a VM's move in a time, as a sentence.
func reportOf(in *rule.Input, vm string, fromNanos, toNanos int64) string {
	for _, e := range in.Events {
		moved := e.Platform == interval.PlatformMoved || e.Platform == interval.PlatformRestarted
		if e.Kind == interval.EventPlatform && e.Subject == vm && moved && e.AtNanos >= fromNanos && e.AtNanos <= toNanos && e.Message != "" {
			return sentence(e.Message)
		}
	}
	return ""
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// loadsAfter names the workloads of a group that still ran after a given time.
func loadsAfter(in *rule.Input, group string, atNanos int64) []string {
	var names []string
	for _, l := range rule.Measured(in) {
		if name := in.Name(l); l.Group == group && l.ToNanos > atNanos && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// nodeName returns the name of a node, or its id if the plan does not list it.
func nodeName(in *rule.Input, id string) string {
	for _, n := range in.KnownPlan().Target.Nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}
