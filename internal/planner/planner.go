// Package planner makes plans: it binds a scenario to a target, or to hypothetical ones, and returns everything that a run would
// do, or all faults at once. It changes nothing and runs nothing.
//
//	Compile:    Scenario + Inventory + Catalog ──▶ Plan, or all diagnostics at once
//	DryCompile: Scenario + Catalog ──▶ faults on every target, and the effect and time of each step
//
//	compile.go, block.go     calls ──▶ bound steps, blocks expanded ──▶ their times
//	engines.go, workplan.go, place.go  generator, extents and VMs of each workload
//	rehearse.go, rehearse_vms.go, lasting.go  scaling of a run; loads that are then extended over slow steps
//	windows.go, queries.go   names that thresholds and results may use
//	finish.go, preflight.go  sums, undo order and notes; resource checks
package planner

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Options of a plan. The zero value plans a full run.
type Options struct {
	Engine string // name of a generator for all job files; "" selects the scenario's choice, or the default
	Seed   uint64
	// Rehearse is the approximate length of the run phase of a rehearsal; 0 plans a full run.
	Rehearse time.Duration
	// RehearseBytes bounds the bytes that a rehearsal touches on the target's storage; 0 is 2 GiB.
	RehearseBytes int64
	// AllowShell: the user lets the scenario run programs.
	AllowShell bool
	// FullPercentMax is how full the storage may be after the run, in percent; 0 means 70.
	FullPercentMax float64
	// RateFactor multiplies all rates of job files; 0 is 1.
	RateFactor float64
}

// Plan is an executable plan: the recorded plan, and the inputs that it was made from.
type Plan struct {
	plan.Plan

	Bound     []Bound `json:"-"` // parallel to Steps
	workloads map[string]*workloadPlan
	inventory target.Inventory
	Document  *scenario.Scenario `json:"-"`
}

// ReadPlan reads a plan that was written as JSON, for Cleaner: together with its scenario it describes the intended run,
// but it cannot be executed.
func ReadPlan(text []byte, sc *scenario.Scenario) (*Plan, error) {
	p, err := plan.Read(text)
	if err != nil {
		return nil, err
	}
	return &Plan{Plan: *p, Document: sc}, nil
}

// WorkloadNumber returns the place of a workload in the scenario.
func (p *Plan) WorkloadNumber(name string) int {
	return max(0, slices.IndexFunc(p.Workloads, func(w plan.Workload) bool { return w.Name == name }))
}

// TimeFactor is the time factor of a rehearsal, 1 in a full run.
func (p *Plan) TimeFactor() float64 {
	if p.Rehearsal == nil {
		return 1
	}
	return p.Rehearsal.TimeFactor
}

// GeneratorOf is the registration of the generator that drives a workload.
func (p *Plan) GeneratorOf(workload string) load.Kind { return p.workloads[workload].kind }
