// Package finding holds the one form in which lint, audit, analysis and proof say something: a claim with its evidence.
package finding

import "github.com/braggdev/bragg/internal/diag"

// Severity orders findings. Fail and Undecided set the exit code of a run.
type Severity string

const (
	Info      Severity = "info"
	Warning   Severity = "warning"
	Undecided Severity = "undecided" // cannot be decided: exit 3
	Fail      Severity = "fail"      // a threshold was missed or a rule violated: exit 1
)

// UnmarshalText reads a severity. Bundles of earlier versions have "unknown" for undecided.
func (s *Severity) UnmarshalText(text []byte) error {
	if *s = Severity(text); *s == "unknown" {
		*s = Undecided
	}
	return nil
}

// Finding is one claim. Renderers show it without knowing who made it.
type Finding struct {
	Code      string   `json:"code"` // stable, in kebab case: "generator-stalled"
	Severity  Severity `json:"severity"`
	Subject   string   `json:"subject,omitempty"` // which series, workload, VM or file
	FromNanos int64    `json:"from_ns,omitempty"` // window on the run's axis; 0,0 is the whole run
	ToNanos   int64    `json:"to_ns,omitempty"`
	Claim     string   `json:"claim"` // one sentence with its number, unit and interval
	Evidence  []string `json:"evidence,omitempty"`
	Caveats   []string `json:"caveats,omitempty"`
	Advice    string   `json:"advice,omitempty"`
	// Share is the part of the intervals or operations of its subject that it affects, up to 1; 0: all of them.
	Share float64 `json:"share,omitempty"`
	// Flatters: the fault can only have made the numbers better than the truth, so that a limit that they miss is missed.
	Flatters bool           `json:"flatters,omitempty"`
	Pos      *diag.Position `json:"position,omitempty"`
}

// ExitCode derives the exit code of the process from findings.
func ExitCode(all []Finding) int {
	code := diag.ExitPass
	for _, f := range all {
		switch f.Severity {
		case Fail:
			return diag.ExitFailed
		case Undecided:
			code = diag.ExitUndecided
		}
	}
	return code
}
