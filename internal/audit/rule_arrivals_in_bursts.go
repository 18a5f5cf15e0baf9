package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// burstNoticed is how many operations due at one instant are reported: they queue behind each other, and latency is that of their queue.
const burstNoticed = 4

var arrivalsInBursts = rule.Rule{
	Code:    "arrivals-in-bursts",
	Summary: "clones of a job with a rate issue their operations at the same instants",
	Doc: "A rate is spaced evenly by default, and all clones (numjobs) of a job start their schedule together. Their operations " +
		"are due in bursts, and each waits for the others of its burst: response time describes the burst, and the target is " +
		"idle between two of them. Real arrivals are random.",
	Example: `OLTP: the 16 clones of job "data" issue their operations at the same instants, in bursts of 16.`,
	Check:   checkArrivalsInBursts,
}

func checkArrivalsInBursts(in *rule.Input) []finding.Finding {
	return rule.AboutJobs(in, func(j *load.JobPlan) bool { return j.Linear && j.Clones >= burstNoticed }, func(l rule.Load, jobs []load.JobPlan) finding.Finding {
		n := unit.FormatWhole(uint64(jobs[0].Clones))
		return in.About(l.LoadSummary, finding.Warning, "Set rate_process=poisson, or use one clone with a larger queue depth.",
			"%s: the %s clones of %s issue their operations at the same instants, in bursts of %s.", in.Name(l.LoadSummary), n, rule.JobsText(jobs), n)
	})
}
