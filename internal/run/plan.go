package run

import (
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Options of a plan. The zero value plans a full run.
type Options struct {
	Engine string // name of a generator for all job files; "" is the scenario's choice, else the default
	Seed   uint64
	// Rehearse is about how long the run phase of a rehearsal takes; 0 plans a full run.
	Rehearse time.Duration
	// RehearseBytes bounds what a rehearsal touches on the target's storage; 0 is 2 GiB.
	RehearseBytes int64
	// AllowShell: the user lets the scenario run programs.
	AllowShell bool
	// FullPercentMax is how full the storage may be afterwards, in percent; 0 is 70.
	FullPercentMax float64
}

// Phase of a run, as plans name it.
type Phase = plan.Phase

// The phases.
const (
	Setup    = plan.Setup
	Run      = plan.Run
	Teardown = plan.Teardown
	Undoing  = plan.Undoing
)

// Plan is a plan that can be run: what it says, and what that was made of.
type Plan struct {
	plan.Plan

	bound     []boundStep // parallel to Steps
	workloads map[string]*workloadPlan
	inventory target.Inventory
	scenario  *scenario.Scenario
}

// ReadPlan reads a plan that was written as JSON, for Cleaner: together with its scenario it tells what was to be done,
// but it cannot be run.
func ReadPlan(text []byte, sc *scenario.Scenario) (*Plan, error) {
	p, err := plan.Read(text)
	if err != nil {
		return nil, err
	}
	return &Plan{Plan: *p, scenario: sc}, nil
}

// workloadNumber returns the place of a workload in the scenario.
func (p *Plan) workloadNumber(name string) int {
	return max(0, slices.IndexFunc(p.Workloads, func(w plan.Workload) bool { return w.Name == name }))
}

// timeFactor is that of a rehearsal, 1 in a full run.
func (p *Plan) timeFactor() float64 {
	if p.Rehearsal == nil {
		return 1
	}
	return p.Rehearsal.TimeFactor
}
