// Package pgbench is the generator that runs the real pgbench of PostgreSQL, against a server that it starts on the VM or on one of
// another group, or against an endpoint that the user names. Bragg neither links nor contains PostgreSQL.
//
//	prefill:  initdb ▶ postgres ▶ pgbench -i ▶ stop; or pgbench -i against the endpoint
//	load:     postgres ▶ pgbench -l ──one line per transaction──▶ Intervals; its summary must have the same totals
//
//	options.go, plan.go, commands.go   what a workload asks for, its plan, the commands
//	run.go, logs.go, log.go            a running load, the log files of pgbench, a line of them
//	summary.go, backlog.go             the totals of pgbench, and what was due and never begun
//	simulate.go                        for VMs in memory
//
// Every transaction is recorded with the microseconds of pgbench's own log. With a rate, response time counts from the schedule and
// service time from the start of the transaction; without one the loop is closed. Skipped transactions are operations that were due
// and never issued; failed ones are errors.
package pgbench

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "pgbench"

// Generator runs pgbench. The zero value finds the newest PostgreSQL of the machine.
type Generator struct{}

var _ load.Generator = Generator{}

// Plan returns the commands that would run and the data that they need. It does not look at this machine's programs.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return c.plan(&w)
}

// Prepare finds the programs and, for a load, starts the server or reaches that of another VM. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	if w.Remote.Serves {
		return c.server.Serve(ctx, w, postgres.Use{Name: Name, Said: program.NewTranscript(load.OutputBytesMax)})
	}
	in := &instance{workload: w, config: c, said: program.NewTranscript(load.OutputBytesMax)}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// engine describes the load before the versions on the VM are known.
func (c *config) engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed}
	if c.rate > 0 {
		e.Loop = interval.LoopOpen
	}
	for _, s := range c.scripts {
		e.Operations = append(e.Operations, s.name)
	}
	if c.server.Endpoint == "" {
		e.Gauges = postgres.Gauges
	}
	if c.contended() {
		e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteContended,
			Text: fmt.Sprintf("%d clients update %d rows of pgbench_branches and wait for each other's locks", c.connections(), c.scale)})
	}
	return e
}
