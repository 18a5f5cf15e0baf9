package audit

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// starvedShareNoticed is a share of a workload's time, summed over its VMs, in intervals whose latencies contain waits
	// for a CPU.
	starvedShareNoticed = 0.05
	// lackedShareUndecided is a share of all that time without a CPU: so much of every latency may be the generator's own.
	lackedShareUndecided = 0.25
)

var generatorStarved = rule.Rule{
	Code:    "generator-starved",
	Summary: "the load generator was starved of CPU time",
	Doc: "A thread of the generator was runnable but had to wait: other programs or too many threads used the CPUs, the " +
		"hypervisor gave them to other machines (steal), or a control group throttled them. An interval counts when the " +
		"wait exceeds 5 % of its length: every latency in it may be too long by that much, and operations were submitted " +
		"late. A wait of 25 % of the runtime or more makes the run undecided.",
	Example: `The load generator of OLTP was CPU-starved in 12 % of its intervals, first at 3:07 on OLTP-0001.`,
	Check:   checkGeneratorStarved,
}

func checkGeneratorStarved(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if f, ok := starved(in, l); ok {
			list = append(list, f)
		}
	}
	return list
}

func starved(in *rule.Input, l *result.LoadSummary) (finding.Finding, bool) {
	var nanos, lacked, lasted int64
	var first *digest.Stream
	worst := digest.Stream{}
	for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
		nanos += s.StarvedNanos
		lacked += s.LackedNanos
		lasted += s.Lasted()
		worst.WorstEffort.Join(s.WorstEffort)
		if s.StarvedNanos > 0 && (first == nil || s.StarvedAt < first.StarvedAt) {
			first = s
		}
	}
	if first == nil || float64(nanos) < starvedShareNoticed*float64(lasted) {
		return finding.Finding{}, false
	}
	share := float64(nanos) / float64(max(1, lasted))
	f := finding.Finding{Severity: finding.Warning, Share: share, Subject: l.Workload, FromNanos: first.StarvedAt, ToNanos: l.ToNanos,
		Claim: fmt.Sprintf("The load generator of %s was CPU-starved in %s of its intervals, first at %s on %s.", in.Name(l),
			unit.FormatPercent(share),
			unit.FormatClock(first.StarvedAt), first.VM),
		Advice: "Give the load generator more CPU, run fewer VMs on its machine, or use fewer threads.",
	}
	e := worst.WorstEffort
	for _, what := range []struct {
		nanos int64
		text  string
	}{
		{e.WaitedNanos, "run-queue wait of a thread: up to %s in one interval"},
		{e.StolenNanos, "CPU steal from the busiest thread: up to %s in one interval"},
		{e.ThrottledNanos, "cgroup CPU throttling: up to %s in one interval, averaged over all CPUs"},
	} {
		if what.nanos >= int64(time.Millisecond) { // less is not why
			f.Evidence = append(f.Evidence, fmt.Sprintf(what.text, rule.Span(what.nanos)))
		}
	}
	if float64(lacked) >= lackedShareUndecided*float64(lasted) {
		f.Severity = finding.Undecided
	}
	return f, true
}
