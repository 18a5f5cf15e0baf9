package audit

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

var rehearsal = rule.Rule{
	Code:    "rehearsal",
	Summary: "the run was a rehearsal: scaled down in time, VMs and data",
	Doc: "A rehearsal shows that a scenario works on a target. Its data may fit into caches that the full data set exceeds, and its " +
		"phases are too short for a steady state. Compare it only with rehearsals of the same scale factors.",
	Example: `This is a rehearsal of 1 m (time factor 0.0249); its numbers do not describe the full scenario.`,
	Check:   checkRehearsal,
}

func checkRehearsal(in *rule.Input) []finding.Finding {
	r := in.Manifest.Rehearsal
	if r == nil {
		return nil
	}
	return []finding.Finding{{Severity: finding.Warning,
		Claim: fmt.Sprintf("This is a rehearsal of %s (time factor %.3g); its numbers do not describe the full scenario.",
			rule.Span(int64(r.Asked/time.Nanosecond)), r.TimeFactor),
		Advice: "Run the scenario without --rehearse to get comparable numbers.",
	}}
}
