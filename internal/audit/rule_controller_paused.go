package audit

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var controllerPaused = Rule{
	Code:    "controller-paused",
	Summary: "the program that drives the run stood still",
	Documentation: "The controller was stopped by a signal (Ctrl-Z, a debugger, a frozen control group), or its machine slept. Loads on other machines went " +
		"on as long as their agents could keep what they measured, and stood still when they could not; steps that were due came late, and ends of " +
		"operations in that time were noticed late. Stretches without numbers in that time are no outage of the target.",
	Example: `The controller stood still for 1 m 2 s, from 1:10 to 2:12.`,
	Check:   checkControllerPaused,
}

// pauseClaim leaves out a length that is none on the run's axis: while the machine sleeps, the axis stands still too.
func pauseClaim(e interval.Event, from int64) string {
	if from == e.AtNanos || e.SpanNanos < int64(time.Second) {
		return fmt.Sprintf("The controller stood still at %s: its machine slept.", clock(e.AtNanos))
	}
	return fmt.Sprintf("The controller stood still for %s, from %s to %s.", span(e.SpanNanos), clock(from), clock(e.AtNanos))
}

func checkControllerPaused(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind != interval.EventPaused {
			continue
		}
		from := max(0, e.AtNanos-e.SpanNanos)
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Subject, FromNanos: from, ToNanos: e.AtNanos,
			Claim:    pauseClaim(e, from),
			Evidence: []string{clock(e.AtNanos) + ": " + e.Message},
			Advice:   "Keep the controller running (no Ctrl-Z, no sleep of its machine), and repeat the run if steps or a recovery fall into that time.",
		})
	}
	return list
}
