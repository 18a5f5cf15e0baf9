package result

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
)

// Verdict is the outcome of the thresholds of a run.
type Verdict string

const (
	Pass      Verdict = "PASS"
	Failed    Verdict = "FAIL"
	Undecided Verdict = "UNDECIDED"
	Completed Verdict = "COMPLETED" // the scenario defines no thresholds
)

// Good reports whether the run met its thresholds, if it has any. A word that this version does not know decides nothing.
func (v Verdict) Good() bool { return v == Pass || v == Completed }

// UnmarshalText reads a verdict. UNDECIDED was called UNKNOWN before version 0.1.
func (v *Verdict) UnmarshalText(text []byte) error {
	if *v = Verdict(text); *v == "UNKNOWN" {
		*v = Undecided
	}
	return nil
}

// Validity says whether the numbers of a run describe what its scenario set out to measure, whatever its thresholds say.
type Validity string

const (
	Valid     Validity = "VALID"
	Qualified Validity = "QUALIFIED" // a warning restricts some of the numbers
	Invalid   Validity = "INVALID"   // they do not hold: no threshold is decided by them
)

// ValidityOf derives the validity of a run that has ended, and one sentence on why. Findings are in the order of the audit: the
// worst first. One of severity fail is about the platform, not about the measurement. Warnings of one kind count once, as reports merge
// them.
func ValidityOf(ended string, findings []finding.Finding) (of Validity, reason string) {
	kinds, marked := map[string]bool{}, false
	for _, f := range findings {
		switch f.Severity {
		case finding.Undecided:
			return Invalid, f.Claim
		case finding.Info, finding.Fail:
		default: // a warning, or a word of a later version
			// Rehearsals and simulations are marked as such anyway: any other warning says more.
			isMark := f.Code == "rehearsal" || f.Code == "simulated"
			if reason == "" || marked && !isMark {
				reason, marked = f.Claim, isMark
			}
			if f.Code != "rehearsal" {
				kinds[f.Code] = true
			}
		}
	}
	switch {
	case ended != EndedCompleted:
		return Invalid, fmt.Sprintf("The run did not complete: %s.", ended)
	case reason == "":
		return Valid, "The audit has no warnings."
	case len(kinds) > 1:
		reason += fmt.Sprintf(" (1 of %d warnings)", len(kinds))
	}
	return Qualified, reason
}

// Headline joins verdict and validity: "PASS", "PASS, qualified".
func Headline(v Verdict, of Validity) string {
	if of == Valid || of == "" {
		return string(v)
	}
	return string(v) + ", " + strings.ToLower(string(of))
}
