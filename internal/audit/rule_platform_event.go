package audit

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// platformEventsMax bounds the findings of one run: a flapping node reports without end.
const platformEventsMax = 20

var platformEvent = rule.Rule{
	Code:    "platform-event",
	Summary: "the platform reported a failure or an alarm during a load",
	Doc: "The platform under test says by itself that something was wrong while loads ran: a node left the cluster, a VM lost its power, " +
		"storage lost its redundancy. Numbers of that time are those of a degraded platform, or of one that rebuilds. What the run did " +
		"itself is expected, such as a node that it powered off: its severity is info. Moves of VMs have a rule of their own, " +
		"vm-moved.",
	Example: `Platform event on host-2 at 4:10, during OLTP: Host host-2 in Cluster is not responding.`,
	Check:   checkPlatformEvent,
}

func checkPlatformEvent(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	left := 0
	for _, e := range in.Events {
		if e.Kind != interval.EventPlatform || e.Platform == interval.PlatformMoved || e.Platform == interval.PlatformRestarted {
			continue
		}
		ran := loadsAt(in, e.AtNanos)
		if ran == "" {
			continue
		}
		if len(list) == platformEventsMax {
			left++
			continue
		}
		f := finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: e.AtNanos, ToNanos: e.AtNanos,
			Claim:  fmt.Sprintf("Platform event%s at %s, during %s: %s", about(e), unit.FormatClock(e.AtNanos), ran, sentence(e.Message)),
			Advice: "Repair what the platform reports, wait until it has its redundancy again, then repeat the run."}
		if e.Platform == interval.PlatformNodeUp || causedByRun(in, e) {
			f.Severity, f.Advice = finding.Info, ""
		}
		list = append(list, f)
	}
	if left > 0 {
		list[len(list)-1].Claim += fmt.Sprintf(" %d more reports are in the events.", left)
	}
	return list
}

// loadsAt names the measured workloads that ran at a time.
func loadsAt(in *rule.Input, atNanos int64) string {
	var names []string
	for _, l := range rule.Measured(in) {
		if name := in.Name(l); l.FromNanos <= atNanos && atNanos <= l.ToNanos && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return textio.JoinAnd(names)
}

func cutsPower(o interval.Operation) bool {
	return o == interval.OperationNodeOff || o == interval.OperationNodeShutdown
}

func about(e interval.Event) string {
	if e.Subject == "" {
		return ""
	}
	return " on " + e.Subject
}

// causedByRun reports whether the event is what a step of the run does: it had powered off the node, or the VM on it, before.
func causedByRun(in *rule.Input, e interval.Event) bool {
	for _, before := range in.Events {
		switch {
		case before.AtNanos > e.AtNanos: // and go on: an operation is recorded when its start is known for sure, after later events
		case before.Kind == interval.EventAnnotation && before.CutByRun && before.Subject == e.Subject && e.Subject != "":
			return true
		case before.Kind == interval.EventOperationStarted && cutsPower(before.Operation) && (before.Subject == e.Subject || before.Node == e.Node && e.Node != ""):
			return true
		}
	}
	return false
}
