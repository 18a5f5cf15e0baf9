// Package fio is the generator that runs the real fio, for job files with options that the native engine lacks and for
// comparisons with it. It needs fio on PATH; Bragg neither links nor contains fio.
//
//	Workload ──compile──▶ job file on fio's standard input ──▶ one fio process
//	fio's cumulative status documents, one per second ──difference──▶ Intervals
//
// Accuracy of its figures: latency is fio's clat, counted from the actual submission, so that there is no response time
// from an intended start (Traffic.Response stays nil), even with rates. It is from fio's buckets, 64 per power of two,
// recorded at their midpoint: a quantile is within 0.8 % of a value plus the 0.4 % of Bragg's own buckets. The minimum and
// maximum latency of a run are exact. Above 17 s fio has a single bucket, which is recorded at the largest value so far.
// During ramp_time fio has no latencies, and what it moves then does not count.
package fio

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Generator runs fio. The zero value finds it on PATH.
type Generator struct{}

var _ load.Generator = Generator{}

// Plan returns what fio would do. It runs fio only for its version and opens no device.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	engine, err := find()
	if err != nil {
		return load.Plan{}, err
	}
	c, err := compile(w)
	if err != nil {
		return load.Plan{}, err
	}
	if err := c.print(w); err != nil {
		return load.Plan{}, err
	}
	c.plan.Engine = engine.describe(c.loop())
	return c.plan, nil
}

// Prepare checks the configuration and that the devices exist. It checks and holds block devices that are written to; fio
// itself opens all devices when Run starts it.
func (Generator) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	engine, err := find()
	if err != nil {
		return nil, err
	}
	c, err := compile(measured(w))
	if err != nil {
		return nil, err
	}
	if err := c.fit(w); err != nil {
		return nil, err
	}
	in := &instance{engine: engine, grace: stopGrace, workload: w, compiled: c}
	if err := in.admit(); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if err := c.print(in.workload); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// engine is the installed fio.
type engine struct {
	path    string
	version string // "3.33"
}

func (e engine) describe(loop interval.Loop) interval.Engine {
	return interval.Engine{Name: "fio", Version: e.version, Loop: loop, Notes: []interval.EngineNote{{Code: interval.NoteResolution,
		Text: "totals about once a second: shorter stalls are averaged, and the longest one is unknown"}}}
}

// find returns the fio on PATH.
func find() (engine, error) {
	missing := &diag.Error{
		Code: "fio-missing", Exit: diag.ExitUnavailable,
		Message: "find fio: the program is not on PATH",
		Hint:    "install the package fio (apt-get install fio), or run with --engine native",
	}
	path, err := exec.LookPath("fio")
	if err != nil {
		return engine{}, missing
	}
	out, err := program.VersionText(context.Background(), path)
	if err != nil {
		missing.Message, missing.Err = fmt.Sprintf("ask %q for its version", path), err
		return engine{}, missing
	}
	return engine{path: path, version: strings.TrimPrefix(strings.TrimSpace(out), "fio-")}, nil
}
