package knee

import (
	"fmt"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Sentence says what a search for a threshold found.
func (a *Answer) Sentence(threshold string) string {
	rate := func(v float64) string { return unit.FormatCount(v) }
	runs := textio.Plural(len(a.Runs), "run")
	var text string
	switch a.Kind {
	case Found:
		text = fmt.Sprintf("%s holds up to %s operations/s over all VMs (%s to %s, 95 %%), %s times the scenario's rate; %s.",
			threshold, rate(a.Rate), rate(a.RateLow), rate(a.RateHigh), unit.ThreeDigits(a.Factor), runs)
		if !a.Precise {
			text += " The interval is wider than asked for: more runs would narrow it (--knee-runs)."
		}
	case AlwaysMet:
		text = fmt.Sprintf("%s holds at every rate tried, up to %s operations/s over all VMs, %s times the scenario's rate; the highest rate is not known; %s.",
			threshold, rate(a.Rate), unit.ThreeDigits(a.Factor), runs)
	case NeverMet:
		text = fmt.Sprintf("%s does not hold at any rate tried, down to %s operations/s over all VMs, %s times the scenario's rate; %s.",
			threshold, rate(a.Rate), unit.ThreeDigits(a.Factor), runs)
	default:
		return threshold + ": not known, because no run completed."
	}
	if a.Undecided > 0 {
		count := "count"
		if a.Undecided == 1 {
			count = "counts"
		}
		text += fmt.Sprintf(" %s did not decide and %s as missed.", textio.Plural(a.Undecided, "run"), count)
	}
	if a.Invalid > 0 {
		text += fmt.Sprintf(" %s that missed it measured with an INVALID result: the limit may be that of the load generator.", textio.Plural(a.Invalid, "run"))
	}
	if a.Contradiction != "" {
		text += " " + a.Contradiction
	}
	return text
}
