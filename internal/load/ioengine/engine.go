// Package ioengine is the native load generator: it reads fio's job files and does their I/O in this process, with
// io_uring, libaio, calls that block, mapped memory, or not at all (null).
//
//	job file ──fiojob──▶ jobs ──compile──▶ program ──Prepare──▶ instance: workers with lanes ──Run──▶ intervals
//
// A lane is one clone of one job, what fio runs as a process; a stream is a lane on one device. A worker is one thread
// that drives some lanes through one back end; a timeline collects what the workers recorded, once per period.
//
// What to read: package program works a job out; package pattern says what operation n of a clone is, package
// content what it writes; lane.go when it is issued; worker.go is the loop; package backend does operations; record.go and
// timeline.go make intervals. What a lane may be besides: a replay of a log (replay.go), a recording of one (record_log.go),
// verified (package verifying), trimmed and written (trim.go), kept from overlaps (overlap.go). observe.go shows single
// operations to others.
//
// What it is not: it emulates no option by another. What it lacks is refused with the option's name, and the caller
// may choose real fio.
package ioengine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
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

// Plan says what w would do, without opening a device.
func (g Generator) Plan(w load.Workload) (load.Plan, error) {
	file, issues, err := readJobs(w)
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
	if own, err := jobsAlone(w); err == nil {
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
		if file, _, err := readJobs(full); err == nil {
			if unscaled, err := g.compile(full, file.Jobs()); err == nil {
				plan.ScaledFrom = program.Touched(unscaled.Extents())
			}
		}
	}
	return plan, nil
}

// jobsAlone are those of the job file, whatever runtime the workload is given.
func jobsAlone(w load.Workload) ([]fiojob.Job, error) {
	w.Runtime = 0
	file, _, err := readJobs(w)
	if err != nil {
		return nil, err
	}
	return file.Jobs(), nil
}

// Options of a Workload.
const (
	optionBackend      = "backend"         // as Generator.Backend
	optionPrefillDepth = "prefill_iodepth" // queue depth of a prefill
	optionBacklog      = "backlog"         // what becomes of operations that are late; see ParseBacklog
)

// readJobs parses the job file and makes of it what the workload asks for: its rehearsal, its runtime, its prefill.
func readJobs(w load.Workload) (*fiojob.File, diag.List, error) {
	depth, err := prefillDepth(w)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	file, issues := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{Windows: runtime.GOOS == "windows"})
	issues = append(issues, file.Unsupported()...)
	issues = append(issues, file.Undeclared(names)...)
	if err := issues.Err(); err != nil {
		return nil, issues, err
	}
	size := func(name string) (int64, bool) {
		for _, d := range w.Devices {
			if d.Name == name {
				return d.SizeBytes, d.SizeBytes > 0
			}
		}
		return 0, false
	}
	rates, err := w.RateScale()
	if err != nil {
		return nil, issues, err
	}
	file = region.ScaleRates(region.Scale(region.Resolve(file, size), w.Scale.Factor, w.Scale.BlocksMin), rates)
	switch {
	case w.Prefill && depth > 0:
		file = region.Prefill(file).WithDepth(depth)
	case w.Prefill:
		file = region.Prefill(file)
	default:
		file = file.WithRuntime(w.Runtime).ContinueOnErrors()
	}
	return file, issues, nil
}

// prefillDepth reads the options of a workload, all of them.
func prefillDepth(w load.Workload) (depth int, err error) {
	for key, value := range w.Options {
		bad := &diag.Error{
			Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("option %q of workload %q: the native engine has no such option", key, w.Name),
			Hint:    "it has " + optionBackend + ", " + optionBacklog + " and " + load.OptionRateScale,
		}
		switch key {
		case optionBackend, load.OptionRateScale:
		case optionBacklog:
			if _, err := ParseBacklog(value); err != nil {
				return 0, err
			}
		case optionPrefillDepth:
			if depth, err = strconv.Atoi(value); err != nil || depth < 1 {
				bad.Message = fmt.Sprintf("option %q of workload %q: want a queue depth, and not %q", key, w.Name, value)
				return 0, bad
			}
		default:
			return 0, bad
		}
	}
	return depth, nil
}

// compile makes the program and applies the choice of a back end.
func (g Generator) compile(w load.Workload, jobs []fiojob.Job) (*program.Program, error) {
	p, err := program.Compile(w, jobs, g.Replay)
	if err != nil {
		return p, err
	}
	choice := g.Backend
	if option := w.Options[optionBackend]; option != "" {
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
	file, _, err := readJobs(w)
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
	if policy := w.Options[optionBacklog]; err == nil && policy != "" {
		after, err := ParseBacklog(policy)
		if err != nil {
			return nil, errors.Join(err, in.Close())
		}
		Run{in}.DropBacklog(after)
	}
	return in, err
}

// BackendOf names the back end that does the work of one of fio's engines, "" where there is none.
func BackendOf(ioengine string) string {
	kind, _, _ := backend.Of(ioengine)
	return string(kind)
}
