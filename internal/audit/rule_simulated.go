package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var simulated = rule.Rule{
	Code:    "simulated",
	Summary: "the target or a step of the run was simulated",
	Doc: "Numbers of a simulated target describe a model, not a system. Where a target simulates only an operation (the " +
		"local target's migration moves no data), the load is real but the effect of the operation is not.",
	Example: `The target "fake:4" is simulated: no storage was accessed.`,
	Check:   checkSimulated,
}

func checkSimulated(in *rule.Input) []finding.Finding {
	t := in.Manifest.Target
	if t.Simulated {
		return []finding.Finding{{Severity: finding.Warning, Subject: t.Name,
			Claim: fmt.Sprintf("The target %q is simulated: no storage was accessed.", t.Name)}}
	}
	steps := map[string]bool{}
	for _, e := range in.Events {
		if e.Simulate && e.Kind == interval.EventStepStarted && e.Step != "" {
			steps[e.Step] = true
		}
	}
	if len(steps) == 0 {
		return nil
	}
	f := finding.Finding{Severity: finding.Warning, Subject: t.Name,
		Claim: fmt.Sprintf("%s simulated on the target %q.", wereSteps(len(steps)), t.Name)}
	f.Evidence = slices.Sorted(maps.Keys(steps))
	for _, what := range slices.Sorted(maps.Keys(t.Simulates)) {
		f.Caveats = append(f.Caveats, what+": "+t.Simulates[what])
	}
	return []finding.Finding{f}
}

func wereSteps(n int) string {
	if n == 1 {
		return "1 step type was"
	}
	return fmt.Sprintf("%d step types were", n)
}
