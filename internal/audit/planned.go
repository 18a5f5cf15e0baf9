package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// plannedLoad is the first measured start of a workload, with its plan. Rules that judge the plan report it once.
type plannedLoad struct {
	*result.LoadSummary
	plan *load.Plan
}

// planned lists the workloads that ran and are in the plan, in the order of their first start.
func planned(in *Input) []plannedLoad {
	var list []plannedLoad
	for _, l := range measured(in) {
		w, ok := in.plan().Workload(l.Workload)
		if !ok || w.Load == nil || slices.ContainsFunc(list, func(o plannedLoad) bool { return o.Workload == l.Workload }) {
			continue
		}
		list = append(list, plannedLoad{l, w.Load})
	}
	return list
}

// jobs returns the jobs of the load for which is holds.
func (l *plannedLoad) jobs(is func(*load.JobPlan) bool) []load.JobPlan {
	var list []load.JobPlan
	for i := range l.plan.Jobs {
		if is(&l.plan.Jobs[i]) {
			list = append(list, l.plan.Jobs[i])
		}
	}
	return list
}

// aboutJobs makes a finding of every load that has jobs for which is holds.
func aboutJobs(in *Input, is func(*load.JobPlan) bool, say func(l plannedLoad, jobs []load.JobPlan) finding.Finding) []finding.Finding {
	var list []finding.Finding
	for _, l := range planned(in) {
		if jobs := l.jobs(is); len(jobs) > 0 {
			list = append(list, say(l, jobs))
		}
	}
	return list
}

// jobsShownMax bounds how many jobs a claim names.
const jobsShownMax = 3

// jobsText names jobs: `job "log"`, `jobs "log" and "data"`.
func jobsText(jobs []load.JobPlan) string {
	var names []string
	for _, j := range jobs[:min(len(jobs), jobsShownMax)] {
		names = append(names, fmt.Sprintf("%q", j.Name))
	}
	if more := len(jobs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return "job " + names[0]
	}
	return "jobs " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// plan returns the run's plan, or an empty one if there is none.
func (in *Input) plan() *plan.Plan {
	if in.Plan == nil {
		return &plan.Plan{}
	}
	return in.Plan
}
