package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var clockJumped = rule.Rule{
	Code:    "clock-jumped",
	Summary: "a clock was set, or a VM was paused",
	Doc: "Bragg compares the clocks of agents with the clock of the run every 10 seconds. One of them changed by more than " +
		"100 ms between two comparisons. Intervals are placed by monotonic clocks, so setting a wall clock moves no " +
		"interval. A monotonic clock that lost time means that the VM was paused, migrated or starved of CPU; up to 10 " +
		"seconds of its intervals may be misplaced by that amount.",
	Example: `The clock of OLTP-0001 jumped once, by up to 2.1 s at 3:07.`,
	Check:   checkClockJumped,
}

func checkClockJumped(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	at, count, worsts := map[string]int{}, map[string]int{}, map[string]interval.Event{}
	for _, e := range in.Events {
		if e.Kind != interval.EventClockJump {
			continue
		}
		count[e.Subject]++
		if size := worsts[e.Subject].SpanNanos; max(e.SpanNanos, -e.SpanNanos) >= max(size, -size) {
			worsts[e.Subject] = e
		}
		i, known := at[e.Subject]
		if !known {
			i = len(list)
			at[e.Subject] = i
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: e.AtNanos})
		}
		f := &list[i]
		f.ToNanos = e.AtNanos
		if len(f.Evidence) < evidenceMax {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s", unit.FormatClock(e.AtNanos), e.Message))
		}
	}
	for i := range list {
		f := &list[i]
		worst := worsts[f.Subject]
		times := "once"
		if n := count[f.Subject]; n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		f.Claim = fmt.Sprintf("The clock of %s jumped %s, by up to %s at %s.", f.Subject, times, rule.Span(max(worst.SpanNanos, -worst.SpanNanos)),
			unit.FormatClock(worst.AtNanos))
		f.Advice = "Use a time service that slews the clock, and check whether the VM was paused or migrated."
	}
	return list
}
