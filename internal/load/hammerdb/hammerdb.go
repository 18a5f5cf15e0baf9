// Package hammerdb is the generator that runs TPROC-C and TPROC-H of HammerDB, installed by the user, against a PostgreSQL or MariaDB that it
// starts on the VM or against an endpoint. Bragg neither links nor contains HammerDB.
//
//	prefill:  empty server ▶ HammerDB builds ▶ HammerDB checks ▶ stop
//	TPROC-C:  server ▶ HammerDB runs; orders in the table of districts ──once per interval──▶ Intervals; its result must fit to them
//	TPROC-H:  server ▶ HammerDB runs; each query that it reports ──▶ Intervals; the time of each set must fit to them
//
//	options.go, plan.go          what a workload asks for, its plan
//	home.go                      the folder of the installation
//	servers.go                   kinds of servers, as loads need them
//	orders.go, queries.go        TPROC-C and TPROC-H
//	dialect.go, script.go        Tcl of one action: build, check, run, delete
//	run.go, call.go              a prefill or a load, a call of HammerDB
//	follow.go, counts.go         a running TPROC-C, the counters of its database
//	querying.go                  a running TPROC-H
//	output.go, profile.go        what HammerDB prints: result, failures, time profile
//	sets.go                      and of queries
//	simulate.go                  for VMs in memory
//
// HammerDB exits with 0 after a build that failed, and after a test in which no transaction succeeded, so that its output alone decides.
// It counts orders only at both ends of whole minutes. Bragg counts the same rows itself, in every interval.
package hammerdb

import (
	"cmp"
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "hammerdb"

// Generator runs HammerDB.
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

// Prepare finds the programs and, for a load, starts the server and lets HammerDB wait for the start. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	said := program.NewTranscript(load.OutputBytesMax)
	if w.Remote.Serves {
		server, err := c.server.open(ctx, &w, Name+c.schema().room, said)
		return database.Serve(ctx, w, c.kind.title, server, err)
	}
	in := &instance{workload: w, config: c, said: said}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// Operations: each test has one, HammerDB's own measure.
const (
	opNewOrder = "new-order"
	opQuery    = "query"
	// opTransaction is that of a server which only HammerDB counts.
	opTransaction = "transaction"
)

// ownGauges are those of HammerDB. A load of TPROC-C that is ended by a signal has no result, and so no share.
func (c *config) ownGauges() []interval.Gauge {
	if c.queries != nil {
		return queryGauges()
	}
	list := []interval.Gauge{{Name: "transactions", Unit: "1/min"}}
	if c.kind.told {
		return append(list, shareGauge(cmp.Or(c.kind.share, interval.GaugeNewOrderShare)), interval.Gauge{Name: "new orders", Unit: "1/min"})
	}
	if !c.cut {
		list = append(list, shareGauge(interval.GaugeNewOrderShare))
	}
	return list
}

func shareGauge(meaning interval.GaugeMeaning) interval.Gauge {
	return interval.Gauge{Name: "share of new orders", Meaning: meaning}
}

// engine describes the load before the versions on the VM are known.
func (c *config) engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: []string{opQuery}, Gauges: c.ownGauges()}
	switch {
	case c.kind.told:
		e.Operations = []string{opTransaction}
		e.Notes = []interval.EngineNote{c.kind.notTried(), {Code: interval.NoteResolution,
			Text: fmt.Sprintf("transactions are those of HammerDB's counter, every %d s, and have no latencies", counterSeconds)}}
	case c.orders != nil:
		e.Operations = []string{opNewOrder}
		e.Notes = []interval.EngineNote{{Code: interval.NoteResolution, Text: "new orders are counted in the database once per interval, and have no latencies"}}
	}
	if c.endpoint == "" {
		e.Gauges = append(e.Gauges, c.kind.gauges...)
	}
	return e
}
