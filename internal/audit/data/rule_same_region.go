package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
)

var SameRegion = rule.Rule{
	Code:    "same-region",
	Summary: "clones of a job go through the same range in order",
	Doc: "Clones of a sequential job (numjobs) without offset_increment start at the same offset and read the same blocks at " +
		"about the same time. The first one loads a block, and the others find it in a cache of the disk, the controller or " +
		"the host. The sum of their bandwidths is not that of the medium.",
	Example:  `scan: the 4 clones of job "scan" go through the same range in the same order; 3 of 4 operations can be served from a cache.`,
	Check:    checkSameRegion,
	Flatters: true,
}

func checkSameRegion(in *rule.Input) []finding.Finding {
	return rule.AboutJobs(in, func(j *load.JobPlan) bool { return j.SameRegion && j.Clones > 1 }, func(l rule.Load, jobs []load.JobPlan) finding.Finding {
		n := jobs[0].Clones
		return in.About(l.LoadSummary, finding.Warning, "Give each clone its own range: offset_increment, or one job per range.",
			"%s: the %d clones of %s go through the same range in the same order; %d of %d operations can be served from a cache.",
			in.Name(l.LoadSummary), n, rule.JobsText(jobs), n-1, n)
	})
}
