// Package vdbench is the generator that runs parameter files of vdbench: by the native engine, or by the user's own vdbench (package own).
//
//	parameter file ──parmfile──▶ definitions ──▶ runs, one for each combination of a run's loops and rates ──▶ jobs of the native engine
//
//	options.go                 what a workload asks for
//	runs.go, refused.go        runs of a file, and what the native engine cannot do exactly
//	names.go                   names of runs, as vdbench prints them
//	translate.go, place.go     one run as jobs
//	native.go, relay.go        the runs one after the other, as one load
//	totals.go                  the table of runs, as vdbench totals them
//	files.go, filesplan.go,    runs on file systems: translation, plan,
//	filesrun.go                a running load on directory trees
//
// What the native engine cannot do exactly as vdbench documents it is refused by name, never approximated.
package vdbench

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "vdbench"

// Generator runs parameter files.
type Generator struct {
	// Backend is that of the native engine, "" by the jobs: "null" does no I/O.
	Backend string
}

var _ load.Generator = Generator{}

// Plan reads the file and returns its runs.
func (g Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{Issues: c.issues()}, err
	}
	if c.own != nil {
		p, err := c.own.Plan(&w)
		p.Issues = c.issues()
		return p, err
	}
	if len(c.files.runs) > 0 {
		p, err := c.planFiles(&w)
		p.Issues = c.issues()
		return p, err
	}
	p, err := c.plan(g, &w)
	p.Issues = c.issues()
	return p, err
}

// Prepare prepares the first run and checks all.
func (g Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	if c.own != nil {
		if g.Backend == "null" {
			return &simulatedFiles{program.Simulated{Workload: w, Of: c.own.Engine(), Latency: simulatedLatency, Clients: 1}}, nil
		}
		return c.own.Prepare(w)
	}
	if len(c.files.runs) > 0 {
		return g.prepareFiles(ctx, c, w)
	}
	in := &native{workload: w, config: c, generator: g}
	if err := in.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}
