package audit

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

var controllerPaused = rule.Rule{
	Code:    "controller-paused",
	Summary: "the controller of the run was paused",
	Doc: "The controller was stopped by a signal (Ctrl-Z, a debugger, a frozen control group), or its machine was " +
		"suspended. Loads on other machines continued until the buffers of their agents were full. Steps started late, " +
		"and the ends of operations were detected late. Gaps in that time are not an outage of the target.",
	Example: `The controller was paused for 1 m 2 s, from 1:10 to 2:12.`,
	Check:   checkControllerPaused,
}

// pauseClaim omits the length of a suspend: the time axis of the run does not advance while the machine is suspended.
func pauseClaim(e interval.Event, from int64) string {
	if from == e.AtNanos || e.SpanNanos < int64(time.Second) {
		return fmt.Sprintf("The controller was paused at %s: its machine was suspended.", unit.FormatClock(e.AtNanos))
	}
	return fmt.Sprintf("The controller was paused for %s, from %s to %s.", rule.Span(e.SpanNanos), unit.FormatClock(from), unit.FormatClock(e.AtNanos))
}

func checkControllerPaused(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventPaused {
			continue
		}
		from := max(0, e.AtNanos-e.SpanNanos)
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: from, ToNanos: e.AtNanos,
			Claim:    pauseClaim(e, from),
			Evidence: []string{unit.FormatClock(e.AtNanos) + ": " + e.Message},
			Advice:   "Keep the controller running (no Ctrl-Z, no suspend). Repeat the run if steps or a recovery fall into the pause.",
		})
	}
	return list
}
