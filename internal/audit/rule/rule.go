// Package rule is what rules of the audit have in common: the contract, their input, and the words of claims. It has no rule.
//
//	Input ──Rule.Check──▶ findings
//
// Measured and Planned list the loads that rules judge.
package rule

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// Input is the input of rules, which do not change it.
type Input struct {
	Manifest result.Manifest
	Summary  result.Summary
	Events   []interval.Event
	Plan     *plan.Plan     // nil: rules that need it have no findings
	Digest   *digest.Digest // of the intervals; without it, rules that need it have no findings
	Others   []Other        // runs that it is compared with
}

// Rule is one check of every run.
type Rule struct {
	Code    string // of its findings
	Summary string // one line for a list
	Doc     string // why it matters and what to do
	Example string // a claim as it would be printed
	// Flatters: the fault can only have made numbers better than the truth.
	Flatters bool
	Check    func(in *Input) []finding.Finding
}

// Other is a run beside the one that is checked.
type Other struct {
	Run   string
	Loads []result.LoadSummary
}

// Name is the name of one start of a workload in claims.
func (in *Input) Name(l *result.LoadSummary) string {
	if l.Prefill {
		return l.Workload + " (prefill)"
	}
	start := 0
	for i := range in.Summary.Loads {
		other := &in.Summary.Loads[i]
		if other.Workload == l.Workload && !other.Prefill {
			start++
		}
		if other == l {
			break
		}
	}
	if start > 1 {
		return fmt.Sprintf("%s (start %d)", l.Workload, start)
	}
	return l.Workload
}

// Measured lists the workloads whose numbers are results: all except prefills and those that ended before the run phase, such as
// warm-ups.
func Measured(in *Input) []*result.LoadSummary {
	run := int64(math.MinInt64)
	for _, p := range in.Summary.Phases {
		if p.Name == string(plan.Run) {
			run = p.FromNanos
		}
	}
	var list []*result.LoadSummary
	for i := range in.Summary.Loads {
		if !in.Summary.Loads[i].Prefill && in.Summary.Loads[i].ToNanos > run {
			list = append(list, &in.Summary.Loads[i])
		}
	}
	return list
}

// About is a finding about one start of a workload.
func (in *Input) About(l *result.LoadSummary, s finding.Severity, advice, claim string, args ...any) finding.Finding {
	return finding.Finding{Severity: s, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos, Claim: fmt.Sprintf(claim, args...), Advice: advice}
}
