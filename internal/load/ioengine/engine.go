// Package ioengine is the native load generator: it reads fio's job files and does their I/O in this process, with
// io_uring, libaio, calls that block, mapped memory, or not at all (null).
//
//	job file ──fiojob──▶ jobs ──compile──▶ program ──Prepare──▶ instance: workers with lanes ──Run──▶ intervals
//
// A lane is one clone of one job, what fio runs as a process; a stream is a lane on one device. A worker is one thread
// that drives some lanes through one back end; a collector gathers what the workers recorded, once per period.
//
// Where to start: package program compiles a job; package pattern defines operation n of a clone, package content its
// data; lane.go decides when it is issued; worker.go is the loop; package backend executes operations; package
// measuring produces intervals. Optional features of a lane: replay of a log (replay.go), recording of a log
// (record_log.go), verification (package verifying), trims before writes and serialized overlaps (overlap.go), rates
// (schedule.go), search for a queue depth (package search), flows and ramps shared with other lanes (package shares),
// logs of operations (package oplog). Package thread has settings of threads. observe.go reports single operations to
// observers.
//
// Package ioengine never emulates an option by another one. It refuses unsupported options by name; the caller may then
// choose the real fio.
package ioengine

import (
	"context"
	"errors"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// Generator is the native engine as a load.Generator.
type Generator struct {
	// Backend, if set, is used for every job whatever ioengine says: "io_uring", "libaio", "psync", "pvsync2", "mmap" or
	// "null". The option "backend" of a Workload does the same.
	Backend string
	// Replay is the log that PrepareJobs takes the operations of its one job from; nil leaves them to the job.
	Replay *iolog.Log
}

// New returns the generator with its defaults.
func New() Generator { return Generator{} }

var _ load.Generator = Generator{}

// Plan returns the plan of w without opening a device.
func (g Generator) Plan(w load.Workload) (load.Plan, error) {
	file, issues, err := program.Read(w)
	if err != nil {
		return load.Plan{Issues: issues}, err
	}
	p, err := g.compile(w, file.Jobs())
	issues = append(issues, p.Issues...)
	if err != nil {
		return load.Plan{Issues: issues}, err
	}
	plan := load.Plan{
		Engine: p.Engine(), Extents: p.Extents(), Command: file.CommandLine(), Issues: issues,
		BytesWritten: p.BytesWritten(), WriteRate: region.WriteRate(file.Jobs()), MemoryBytes: p.Memory(), Notes: p.Notes(),
	}
	if !w.Prefill {
		plan.Ramp = region.Ramp(file.Jobs())
	}
	if own, err := program.JobsAlone(w); err == nil {
		plan.TakesLeast, plan.TakesMost = region.Takes(own)
		plan.Timed = region.Timed(own)
	}
	for i := range p.Jobs {
		plan.Jobs = append(plan.Jobs, p.Jobs[i].Plan())
		plan.BlockBytesMax = max(plan.BlockBytesMax, p.Jobs[i].BlockMax())
	}
	if w.Scale != (load.Scale{}) {
		full := w
		full.Scale = load.Scale{}
		if file, _, err := program.Read(full); err == nil {
			if unscaled, err := g.compile(full, file.Jobs()); err == nil {
				plan.ScaledFrom = extent.Bytes(unscaled.Extents())
			}
		}
	}
	return plan, nil
}

// compile makes the program and applies the choice of a back end.
func (g Generator) compile(w load.Workload, jobs []fiojob.Job) (*program.Program, error) {
	p, err := program.Compile(w, jobs, g.Replay)
	if err != nil {
		return p, err
	}
	choice := g.Backend
	if option := w.Options[program.OptionBackend]; option != "" {
		choice = option
	}
	if choice != "" {
		if err := p.Choose(choice); err != nil {
			return p, err
		}
	}
	p.FallBack()
	p.Unverify()
	return p, p.CheckPriorities()
}

// Prepare opens the devices and allocates everything that Run needs.
func (g Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, _, err := program.Read(w)
	if err != nil {
		return nil, err
	}
	in, err := g.prepareJobs(w, file.Jobs())
	if err != nil {
		return nil, err // not a nil *instance in an Instance
	}
	return in, nil
}

func (g Generator) prepareJobs(w load.Workload, jobs []fiojob.Job) (*instance, error) {
	p, err := g.compile(w, jobs)
	if err != nil {
		return nil, err
	}
	in, err := prepare(p)
	var refused *uringError
	if errors.As(err, &refused) {
		// The kernel allowed a small ring and not this one: the limit of locked memory on old kernels.
		p.Refused = refused
		p.FallBack()
		in, err = prepare(p)
	}
	if policy := w.Options[program.OptionBacklog]; err == nil && policy != "" {
		after, err := program.ParseBacklog(policy)
		if err != nil {
			return nil, errors.Join(err, in.Close())
		}
		Run{in}.DropBacklog(after)
	}
	return in, err
}
