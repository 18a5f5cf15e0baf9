// Package commitlatency is a generator that measures one wait: that of a single client for the commit of a single row, as an application
// sees it. Around each commit it measures what a commit consists of, one after the other, so that all see the same moments:
//
//	commit          INSERT of one row, durable when it is answered
//	round-trip      SELECT 1: network, protocol and a process of the server
//	fdatasync       a bare write of the same bytes and fdatasync, on the disk of the WAL
//	commit-async    the same INSERT with synchronous_commit=off: it does not wait for the disk
//
//	network = round-trip    database = commit-async - round-trip    disk = commit - commit-async
//
//	prefill:  postgres.Create ▶ an empty table, and a file for the bare writes
//	load:     postgres.Up ▶ prober: one operation after another ──▶ program.Recorder ──▶ Intervals
//
// The client is this process, which speaks PostgreSQL's protocol; no other program is in the path. It is not a benchmark of throughput.
package commitlatency

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Name is the name of the generator.
const Name = "commit_latency"

// Operations, in the order in which they take turns.
const (
	opCommit    = "commit"
	opRoundTrip = "round-trip"
	opBare      = "fdatasync"
	opAsync     = "commit-async"
)

var operations = []string{opCommit, opRoundTrip, opBare, opAsync}

// config is the configuration of one workload.
type config struct {
	server     postgres.Config
	operations []string
	rowBytes   int
}

const (
	rowBytesDefault = 100
	rowBytesMax     = 8000 // larger values are stored out of line
)

var optionNames = []string{"operations", "row_bytes"}

func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{server: postgres.ReadConfig(o, w, optionNames), rowBytes: o.Integer("row_bytes", rowBytesDefault, rowBytesMax)}
	c.server.Clients, c.server.LazyWAL = 2, true
	asked, given := w.Options["operations"]
	words := strings.Fields(strings.ReplaceAll(asked, ",", " "))
	for _, op := range operations {
		if (given && slices.Contains(words, op)) || (!given && (op != opBare || !c.remote())) {
			c.operations = append(c.operations, op)
		}
	}
	for _, word := range words {
		if !slices.Contains(operations, word) {
			o.Fault("operations", "operations: %q is not one of %s", word, strings.Join(operations, ", "))
		}
	}
	switch {
	case given && len(words) == 0:
		o.Fault("operations", "operations: none is named")
	case given && c.remote() && slices.Contains(words, opBare):
		o.Fault("operations", "operations: %s needs the disk of the server, which is not on the VM of the client", opBare)
	}
	return c, o.Err(w.Name, "docs/guides/databases.md lists the options of commit_latency")
}

// remote reports whether the client measures a server of another machine. The disk of the WAL is not there.
func (c *config) remote() bool { return c.server.Endpoint != "" || c.server.Split }

// Generator measures commits. The zero value finds the newest PostgreSQL of the machine.
type Generator struct{}

var _ load.Generator = Generator{}

// waits are derived from the operations of an interval.
var waits = []interval.Gauge{{Name: "wait for the network", Unit: "ms"}, {Name: "wait for the database", Unit: "ms"}, {Name: "wait for the disk", Unit: "ms"}}

func (c *config) engine() interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: c.operations, Gauges: waits}
	if c.server.Endpoint == "" {
		e.Gauges = slices.Concat(waits, postgres.Gauges)
	}
	return e
}

// emptyBytes is a database without rows, tableBytes what is planned for rows.
const (
	emptyBytes = 8 * unit.MiB
	tableBytes = 256 * unit.MiB
)

// Plan returns the commands that would run and what is measured.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	p := load.Plan{Engine: c.engine(), BytesWritten: -1, Program: &load.ProgramPlan{Needs: c.server.Needs()}}
	size := emptyBytes + tableBytes
	data := postgres.Data{Text: fmt.Sprintf("a table that grows by %d bytes of data with each commit", c.rowBytes), Bytes: size, FullBytes: size,
		Names: "table " + table}
	if err := c.server.PlanData(&w, &p, data); err != nil {
		return p, err
	}
	if c.server.Endpoint == "" {
		run := c.server.Planned()
		if w.Prefill {
			postgres.Show(&p, run.Initdb())
		}
		postgres.Show(&p, run.Postgres())
	}
	if w.Prefill {
		p.BytesWritten = emptyBytes + 2*bareBytes
		if c.server.Endpoint != "" {
			p.Notes = append(p.Notes, "the prefill replaces the table "+table+" of the endpoint")
		}
		return p, nil
	}
	p.Jobs = []load.JobPlan{{Name: strings.Join(c.operations, ", "), Pattern: "in turn", QueueDepth: 1, DepthAsked: 1, Clones: 1, Writes: true, Flushes: true}}
	p.Notes = append(p.Notes, "one client: its operations take turns, so that their rates are not those of the database")
	return p, nil
}

// Prepare finds the programs and, for a load, starts the server or reaches that of another VM. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	said := program.NewTranscript(load.OutputBytesMax)
	if w.Remote.Serves {
		return c.server.Serve(ctx, w, postgres.Use{Name: Name, Said: said})
	}
	in := &instance{workload: w, config: c, said: said}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// Simulation replaces the generator on VMs that exist in memory only.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	return program.Simulated{Of: c.engine(), Clients: 1, Latency: simulatedLatency}, nil
}}

const simulatedLatency = time.Millisecond
