package rule

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// Load is the first measured start of a workload, with its plan. Rules that judge the plan report it once.
type Load struct {
	*result.LoadSummary
	Plan *load.Plan
}

// Planned lists the workloads that ran and are in the plan, in the order of their first start.
func Planned(in *Input) []Load {
	var list []Load
	for _, l := range Measured(in) {
		w, ok := in.KnownPlan().Workload(l.Workload)
		if !ok || w.Load == nil || slices.ContainsFunc(list, func(o Load) bool { return o.Workload == l.Workload }) {
			continue
		}
		list = append(list, Load{l, w.Load})
	}
	return list
}

// Jobs returns the jobs of the load for which is holds.
func (l *Load) Jobs(is func(*load.JobPlan) bool) []load.JobPlan {
	var list []load.JobPlan
	for i := range l.Plan.Jobs {
		if is(&l.Plan.Jobs[i]) {
			list = append(list, l.Plan.Jobs[i])
		}
	}
	return list
}

// AboutJobs makes a finding of every load that has jobs for which is holds.
func AboutJobs(in *Input, is func(*load.JobPlan) bool, say func(l Load, jobs []load.JobPlan) finding.Finding) []finding.Finding {
	var list []finding.Finding
	for _, l := range Planned(in) {
		if jobs := l.Jobs(is); len(jobs) > 0 {
			list = append(list, say(l, jobs))
		}
	}
	return list
}

// jobsShownMax bounds how many jobs a claim names.
const jobsShownMax = 3

// JobsText names jobs: `job "log"`, `jobs "log" and "data"`.
func JobsText(jobs []load.JobPlan) string {
	var names []string
	for _, j := range jobs {
		names = append(names, fmt.Sprintf("%q", j.Name))
	}
	if len(names) == 1 {
		return "job " + names[0]
	}
	return "jobs " + textio.Few(names, jobsShownMax)
}

// KnownPlan returns the run's plan, or an empty one if there is none.
func (in *Input) KnownPlan() *plan.Plan {
	if in.Plan == nil {
		return &plan.Plan{}
	}
	return in.Plan
}
