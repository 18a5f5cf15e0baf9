package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
)

var stepDidLess = rule.Rule{
	Code:    "step-did-less",
	Summary: "a step succeeded and did less than the scenario says",
	Doc: "Ansible takes a playbook for a success although a play matches no machine, or every task was skipped: a misspelled group is a " +
		"warning in its output. What the playbook was there for, such as a database or a setting, may be missing in everything measured after it.",
	Example: `Step playbook.Run did less than the scenario says at 1:05: playbook "tune.yml": no machine of the inventory matches the play "database".`,
	Check:   checkStepDidLess,
}

func checkStepDidLess(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, e := range in.Events {
		if e.Kind == interval.EventDisturbance && e.Step != "" && (e.Phase == string(plan.Setup) || e.Phase == string(plan.Run)) {
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: e.Step, FromNanos: e.AtNanos, ToNanos: e.AtNanos,
				Advice: "Compare the groups and conditions of the playbook with the inventory; the bundle has Ansible's output. Then repeat the run.",
				Claim:  fmt.Sprintf("Step %s did less than the scenario says at %s: %s.", e.Step, unit.FormatClock(e.AtNanos), e.Message)})
		}
	}
	return list
}
