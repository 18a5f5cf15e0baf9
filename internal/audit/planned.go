package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// plannedLoad is the first measured start of a workload, with its plan. Rules that judge the plan report it once.
type plannedLoad struct {
	*result.LoadSummary
	plan  *load.Plan
	group plan.Group
}

// planned lists the workloads that ran and are in the plan, in the order of their first start.
func planned(in *Input) []plannedLoad {
	var list []plannedLoad
	for _, l := range measured(in) {
		w, ok := in.plan().Workload(l.Workload)
		if !ok || w.Load == nil || slices.ContainsFunc(list, func(o plannedLoad) bool { return o.Workload == l.Workload }) {
			continue
		}
		group, _ := in.plan().Group(w.Group)
		list = append(list, plannedLoad{l, w.Load, group})
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

// perDevice returns the distinct bytes of each device.
func perDevice(list []extent.Extent) map[string]int64 {
	out := map[string]int64{}
	for _, e := range list {
		if _, done := out[e.Device]; !done {
			out[e.Device] = extent.Bytes(slices.DeleteFunc(slices.Clone(list), func(o extent.Extent) bool { return o.Device != e.Device }))
		}
	}
	return out
}

// depth is the queue depth of all jobs and clones on one VM.
func (l *plannedLoad) depth() (sum int) {
	for _, j := range l.plan.Jobs {
		sum += j.QueueDepth * j.Clones
	}
	return sum
}

// runtime returns the runtime that a step gives to a start of a workload, 0 if none: instances count starts in the order of steps.
func (in *Input) runtime(l *result.LoadSummary) (nanos int64) {
	instance := 0
	for _, s := range in.plan().Steps {
		if s.Workload == l.Workload && s.Starts != nil && !s.Starts.Prefill {
			if instance++; instance == l.Instance {
				return int64(s.Starts.Runtime)
			}
		}
	}
	return 0
}
