package audit

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/finding"
)

var rehearsal = Rule{
	Code:    "rehearsal",
	Summary: "the run was a rehearsal: shorter, with fewer VMs and less data than the scenario",
	Documentation: "A rehearsal shows that a scenario works on a target. Its data fits into caches that the real data " +
		"would not fit into, and its phases are too short to become steady. Compare it with other rehearsals of the " +
		"same factors at most.",
	Example: `This is a rehearsal of 1 m: times were multiplied by 0.0249; its numbers do not describe the scenario.`,
	Check:   checkRehearsal,
}

func checkRehearsal(in *Input) []finding.Finding {
	r := in.Manifest.Rehearsal
	if r == nil {
		return nil
	}
	return []finding.Finding{{Severity: finding.Warning,
		Claim: fmt.Sprintf("This is a rehearsal of %s: times were multiplied by %.3g; its numbers do not describe the scenario.",
			span(int64(r.Asked/time.Nanosecond)), r.TimeFactor),
		Advice: "Run the scenario without --rehearse for numbers to compare.",
	}}
}
