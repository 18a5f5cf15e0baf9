// Package audit checks the measurement of a finished run: stalls of the load generator, missing intervals, percentiles
// with too few operations, reads that the page cache may have served. It never judges the target.
//
//	intervals ──Digest.Add──▶ Digest ┐
//	manifest, plan, events, summary ─┴──Check──▶ findings, worst first
//
// A rule is one file and one line in Rules. Every rule is described for users in docs/guides/audit.md.
package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// Rules lists all rules. To add one: a file beside this one, a line here, a section in docs/guides/audit.md.
func Rules() []Rule {
	return []Rule{
		runIncomplete,
		rehearsal,
		simulated,
		generatorStalled,
		generatorStarved,
		generatorBusy,
		notIssued,
		backlogAtEnd,
		loadErrors,
		intervalsMissing,
		vmStopped,
		powerCut,
		vmMoved,
		identicalSamples,
		fewSamples,
		shortWorkload,
		responseBeyondService,
		coordinatedOmission,
		cacheReads,
		notSteady,
		engineFallback,
		clockJumped,
		startSkew,
		machineShared,
		controllerPaused,
		bufferedWrites,
		firstWrites,
		reducibleContent,
		tinyWorkingSet,
		misaligned,
		sameRegion,
		synchronousEngine,
		arrivalsInBursts,
		diskShared,
		littlesLaw,
		depthNotReached,
		rateNotReached,
		fasterThanStorage,
		noIO,
		bytesMismatch,
		oldFio,
		serviceTimeOnly,
		endedEarly,
		vmImbalance,
		stretchedIntervals,
		warmUpIncluded,
		elidedWork,
		prefillIncomplete,
		memoryDisk,
		fitsInHostMemory,
		generatorOnTarget,
		machineBusy,
		numaImbalance,
		cpuGovernor,
		copiedRun,
	}
}

// Check runs all rules. It returns the findings by severity, worst first, then by the share of the numbers that they affect, then by
// rule.
func Check(in Input) []finding.Finding {
	list := []finding.Finding{}
	for _, r := range Rules() {
		for _, f := range r.Check(&in) {
			f.Code, f.Flatters = cmp.Or(f.Code, r.Code), r.Flatters
			if f.Severity == finding.Unknown && in.Manifest.Rehearsal != nil && f.Code != runIncomplete.Code {
				// A rehearsal only checks whether everything works. A doubt about its numbers is reported but does not change the
				// verdict.
				f.Severity = finding.Warning
			}
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(cmp.Or(b.Share, 1), cmp.Or(a.Share, 1)))
	})
	return list
}

func rank(s finding.Severity) int {
	return slices.Index([]finding.Severity{finding.Fail, finding.Unknown, finding.Warning, finding.Info}, s)
}

// name is the name of one start of a workload in claims.
func (in *Input) name(l *result.LoadSummary) string {
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

// measured lists the workloads whose numbers are results: all except prefills and those that ended before the run phase, such as
// warm-ups.
func measured(in *Input) []*result.LoadSummary {
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

// about is a finding about one start of a workload.
func (in *Input) about(l *result.LoadSummary, s finding.Severity, advice, claim string, args ...any) finding.Finding {
	return finding.Finding{Severity: s, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos, Claim: fmt.Sprintf(claim, args...), Advice: advice}
}
