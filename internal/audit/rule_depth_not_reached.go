package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// Below 90 % the queue depth is not the one of the job file; below half of it, the number describes another experiment.
const (
	depthReached = 0.9
	depthHalf    = 0.5
)

var depthNotReached = rule.Rule{
	Code:    "depth-not-reached",
	Summary: "a closed loop did not have its queue depth in flight",
	Doc: "A closed loop keeps its whole queue depth in flight. The depth reached is the rate times the mean service time " +
		"(Little's law), in the second in which it was largest. If it is lower, operations completed faster than the generator " +
		"submitted them, or the kernel did them one after the other. Throughput is then limited by the generator's side.",
	Example: `randread had at most 6.1 of 32 operations in flight: its numbers are not those of queue depth 32.`,
	Check:   checkDepthNotReached,
}

func checkDepthNotReached(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		depth := float64(l.Plan.Depth())
		pauses := len(l.Jobs(func(j *load.JobPlan) bool { return j.Pauses || j.RateIOPS > 0 })) > 0
		reached := 0.0
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			reached = max(reached, s.DepthMax)
		}
		if l.Engine().Loop != interval.LoopClosed || !l.Engine().DoesIO() || pauses || reached == 0 || reached >= depthReached*depth {
			continue
		}
		f := in.About(l.LoadSummary, finding.Info,
			"Give the generator more CPUs or jobs, set direct=1 for libaio, or request the depth that it reaches.",
			"%s had at most %s of %.0f operations in flight: its numbers are not those of queue depth %.0f.", in.Name(l.LoadSummary),
			unit.FormatCount(reached), depth, depth)
		if reached < depthHalf*depth {
			f.Severity = finding.Warning
		}
		list = append(list, f)
	}
	return list
}
