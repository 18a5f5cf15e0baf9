// Package sysbench is the generator that runs the real sysbench: its tests of CPU, memory, threads, files and databases.
// Bragg neither links nor contains sysbench.
//
//	prefill:  sysbench fileio prepare, or a database server ▶ sysbench oltp_… prepare
//	load:     sysbench TEST run ──one report per second──▶ counts of Intervals
//	                            ──histogram and summary at its end──▶ latencies in the last Interval, and exact totals
//
//	options.go, plan.go, command.go   what a workload asks for, its plan, the commands
//	oltp.go                           of tests of databases
//	report.go, summary.go             what sysbench prints: a line every second, and its end
//	run.go, record.go                 a running load; reports and summary to intervals
//	files.go, database.go             what it runs on
//
// sysbench prints no single latencies and no histograms of intervals: a load has one histogram, when it ends. Percentiles of its reports
// cannot be merged, so they are gauges.
package sysbench

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "sysbench"

// Generator runs sysbench. The zero value finds it on PATH.
type Generator struct{}

var _ load.Generator = Generator{}

// oldest is the first version with a histogram. Version 1.0.20 is tested, and the output of 1.1.0 is read.
const oldest = "1.0"

func needs() []load.Need {
	return []load.Need{{Program: "sysbench", Oldest: oldest, Packages: []load.Package{
		{Family: load.Debian, Name: "sysbench"}, {Family: load.RedHat, Name: "sysbench"}, {Family: load.SUSE, Name: "sysbench"}}}}
}

// Plan returns the commands that would run and the data that they need. It does not look at this machine's programs.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return c.plan(&w)
}

// Prepare finds the program and the files of a load. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	said := program.NewTranscript(load.OutputBytesMax)
	if w.Remote.Serves {
		server, err := c.database.place.open(ctx, &w, said)
		return database.Serve(ctx, w, c.database.kind.title, server, err)
	}
	in := &instance{workload: w, config: c, said: said}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// engine describes the load before the version on the VM is known.
func (c *config) engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: c.test.operations(c), Gauges: c.test.gauges(c),
		Notes: []interval.EngineNote{{Code: interval.NoteResolution,
			Text: "counts once a second, from rates; latencies of the whole load at its end, in buckets of 1.8 %"}}}
	if c.rate() > 0 {
		e.Loop = interval.LoopOpen
	}
	return e
}

// rate is that of the schedule, in operations per second; 0 without one.
func (c *config) rate() int {
	if c.database == nil {
		return 0
	}
	return c.database.rate
}

// Simulation replaces sysbench on VMs that exist in memory only.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	return program.Simulated{Of: c.engine(), Clients: c.threads, Rate: float64(c.rate()), Latency: simulatedLatency, Bytes: uint64(c.block)}, nil
}}

const simulatedLatency = time.Millisecond
