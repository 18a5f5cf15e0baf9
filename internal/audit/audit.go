// Package audit checks the measurement of a finished run: stalls of the load generator, missing intervals, percentiles
// with too few operations, reads that the page cache may have served. It never judges the target.
//
//	intervals ──Digest.Add──▶ Digest ┐
//	manifest, plan, events, summary ─┴──Check──▶ findings, worst first
//
// A rule is one file and one line in Rules; those on the data of loads and on machines are in packages below this one. Every rule is
// described for users in docs/guides/audit.md.
package audit

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/audit/data"
	"github.com/braggdev/bragg/internal/audit/machine"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

// Rules lists all rules. To add one: a file here, in data or in machine, a line here or there, a section in docs/guides/audit.md.
func Rules() []rule.Rule {
	return slices.Concat([]rule.Rule{
		runIncomplete,
		stepDidLess,
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
		platformEvent,
		identicalSamples,
		fewSamples,
		shortWorkload,
		responseBeyondService,
		coordinatedOmission,
		data.CacheReads,
		notSteady,
		engineFallback,
		clockJumped,
		startSkew,
		unequalStreams,
		newOrderShare,
		machine.Shared,
		controllerPaused,
		data.BufferedWrites,
		data.FirstWrites,
		data.NotPreconditioned,
		data.ReducibleContent,
		data.TinyWorkingSet,
		data.Misaligned,
		data.SameRegion,
		synchronousEngine,
		arrivalsInBursts,
		data.DiskShared,
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
		checkpointStalls,
		fewCheckpoints,
		stretchedIntervals,
		warmUpIncluded,
		warmUpLeftOut,
		notSettled,
		data.ElidedWork,
		data.PrefillIncomplete,
		data.MemoryDisk,
		data.SmallDataSet,
		data.MemoryInCaches,
		data.ScaleBelowClients,
		data.HugePagesRefused,
		data.FitsInHostMemory,
		sourceSilent,
	}, machine.Rules(), []rule.Rule{copiedRun})
}

// Check runs all rules. It returns the findings by severity, worst first, then by the share of the numbers that they affect, then by
// rule.
func Check(in rule.Input) []finding.Finding {
	list := []finding.Finding{}
	for _, r := range Rules() {
		for _, f := range r.Check(&in) {
			f.Code, f.Flatters = cmp.Or(f.Code, r.Code), r.Flatters
			if f.Severity == finding.Undecided && in.Manifest.Rehearsal != nil && f.Code != runIncomplete.Code {
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
	return slices.Index([]finding.Severity{finding.Fail, finding.Undecided, finding.Warning, finding.Info}, s)
}
