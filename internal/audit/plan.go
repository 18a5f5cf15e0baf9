package audit

import (
	"slices"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
)

// plan returns the run's plan, or an empty one if there is none.
func (in *Input) plan() *plan.Plan {
	if in.Plan == nil {
		return &plan.Plan{}
	}
	return in.Plan
}

// reads reports whether any job reads.
func reads(l *load.Plan) bool {
	return slices.ContainsFunc(l.Jobs, func(j load.JobPlan) bool { return j.Reads })
}

// direct reports whether any job bypasses the page cache.
func direct(l *load.Plan) bool {
	return slices.ContainsFunc(l.Jobs, func(j load.JobPlan) bool { return j.Direct })
}
