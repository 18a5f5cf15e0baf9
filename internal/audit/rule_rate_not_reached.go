package audit

import (
	"math"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// rateMissed is the share of a rate from which a load is another one than the job file asks for.
	rateMissed = 0.01
	// rateStartNanos: so much of the time of each VM may be the start of its generator.
	rateStartNanos = int64(1e9)
)

var rateNotReached = rule.Rule{
	Code:    "rate-not-reached",
	Summary: "a workload did not reach its rate",
	Doc: "The generator or the target was too slow for the rate of the job file, so that a smaller load than planned was " +
		"measured. Latency of a smaller load is lower. Operations of an open loop count when they are due: those that it drops " +
		"have findings of their own (not-issued, backlog-at-end).",
	Example: `OLTP issued 1,420 of 2,000 operations/s per VM (71 %): a smaller load than planned was measured.`,
	Check:   checkRateNotReached,
}

func checkRateNotReached(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		rate := 0.0
		for _, j := range l.Plan.Jobs {
			rate += j.RateIOPS
		}
		free := l.Jobs(func(j *load.JobPlan) bool { return j.Pauses || j.RateIOPS == 0 })
		var lasted, start int64
		done := uint64(0)
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			lasted, start = lasted+s.Lasted(), start+rateStartNanos
			done += max(s.Due, s.Operations+s.Errors)
		}
		want := rate * float64(lasted-start) / 1e9
		if len(free) > 0 || l.CompletionNanos > 0 || lasted < shortNanos || float64(done) >= (1-rateMissed)*want-4*math.Sqrt(want) {
			continue
		}
		list = append(list, in.About(l.LoadSummary, finding.Warning,
			"Lower the rate to what the target sustains, or give the generator a larger queue depth.",
			"%s issued %s of %s operations/s per VM (%s): a smaller load than planned was measured.", in.Name(l.LoadSummary),
			unit.FormatWhole(uint64(float64(done)/float64(lasted)*1e9)), unit.FormatWhole(uint64(rate)), unit.FormatWholePercent(float64(done)/float64(lasted)*1e9/rate)))
	}
	return list
}
