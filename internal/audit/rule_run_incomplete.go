package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

var runIncomplete = rule.Rule{
	Code:    "run-incomplete",
	Summary: "the run did not complete, or a step or workload failed",
	Doc: "Statistics of an incomplete run describe the part that ran, not the scenario. Windows after the failure are " +
		"missing or shorter than planned.",
	Example: `The run was interrupted after 4 m 10 s; its numbers cover only that time.`,
	Check:   checkRunIncomplete,
}

func checkRunIncomplete(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	if ended := in.Summary.Ended; ended != result.EndedCompleted {
		verb := map[string]string{result.EndedFailed: "failed", result.EndedInterrupted: "was interrupted",
			result.EndedAborted: "was aborted because its controller died"}[ended]
		if verb == "" {
			verb = "did not complete"
		}
		list = append(list, finding.Finding{Severity: finding.Undecided,
			Claim: fmt.Sprintf("The run %s after %s; its numbers cover only that time.", verb, rule.Span(in.Summary.Duration))})
	}
	for _, e := range in.Events {
		if e.Kind == interval.EventStepEnded && e.Error != "" && (e.Phase == "setup" || e.Phase == "run") {
			list = append(list, finding.Finding{Severity: finding.Undecided, Subject: e.Step, FromNanos: e.AtNanos, ToNanos: e.AtNanos,
				Claim: fmt.Sprintf("Step %s of the %s phase failed at %s: %s.", e.Step, e.Phase, unit.FormatClock(e.AtNanos), e.Error)})
		}
	}
	for i := range in.Summary.Loads {
		l := &in.Summary.Loads[i]
		if l.Error != "" {
			list = append(list, finding.Finding{Severity: finding.Undecided, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
				Claim: fmt.Sprintf("Workload %s ended with an error: %s.", in.Name(l), l.Error)})
		}
	}
	return list
}
