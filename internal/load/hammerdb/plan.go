package hammerdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/unit"
)

// plan describes a load or a prefill.
func (c *config) plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: c.engine(), BytesWritten: -1, Program: &load.ProgramPlan{Needs: append([]load.Need{need}, c.server.Needs()...)}}
	data := database.Data{Text: c.schema().text + ", " + unit.FormatBytes(c.dataBytes), Bytes: c.dataBytes, FullBytes: c.fullBytes,
		Names: "all tables of its database"}
	if err := c.server.PlanData(w, &p, data); err != nil {
		return p, err
	}
	for _, command := range c.server.planned(w.Prefill) {
		p.Program.Commands = append(p.Program.Commands, command.String())
	}
	if w.Prefill {
		c.show(&p, Build)
		c.show(&p, Check)
		p.BytesWritten = 2 * c.dataBytes // with the log
		if c.endpoint != "" {
			p.Notes = append(p.Notes, c.prefillNote())
		}
		return p, nil
	}
	c.show(&p, Run)
	if c.queries != nil {
		c.planQueries(w, &p)
	} else {
		c.planOrders(w, &p)
	}
	return p, nil
}

func (c *config) prefillNote() string {
	if c.kind.told {
		return "HammerDB builds its schema in the endpoint, if there is none"
	}
	return "the prefill replaces the tables of HammerDB in the endpoint"
}

// planOrders describes a load of TPROC-C.
func (c *config) planOrders(w *load.Workload, p *load.Plan) {
	t := c.orders
	p.Jobs = []load.JobPlan{{Name: c.engine().Operations[0], Pattern: "transactions", QueueDepth: t.Users, DepthAsked: t.Users, Clones: 1, Reads: true, Writes: true, Flushes: true}}
	p.TakesLeast, p.TakesMost, p.Timed = c.takes(), c.takes(), true
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	switch takes := c.takes(); {
	case c.cut:
		note("HammerDB measures whole minutes, and the load is shorter: it is ended without a result of HammerDB's own")
	case w.Runtime > takes:
		note("HammerDB measures whole minutes: the load ends after %v", takes)
	}
	if t.Users > t.Warehouses && !t.AllWarehouses {
		note("%d users share %d warehouses and wait for each other's locks", t.Users, t.Warehouses)
	}
}

// planQueries describes a load of TPROC-H, which ends with its last query.
func (c *config) planQueries(w *load.Workload, p *load.Plan) {
	t := c.queries
	p.Jobs = []load.JobPlan{{Name: opQuery, Pattern: "queries", QueueDepth: t.Users, DepthAsked: t.Users, Clones: 1, Reads: true}}
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if w.Runtime > 0 {
		note("the load is ended after %v, even if queries are left", w.Runtime)
	} else {
		note("the load ends with the last query of %d: workload.Start waits for it as long as its timeout_secs", t.Users*t.Sets*queryCount)
	}
	note("no refresh functions run: the times of queries are none of the metrics of TPC-H")
}

// show adds a call of HammerDB to a plan, with its script.
func (c *config) show(p *load.Plan, action Action) {
	script := slices.Collect(strings.Lines(c.Script(action)))
	for i := range script {
		script[i] = strings.TrimSpace(script[i])
	}
	p.Program.Commands = append(p.Program.Commands, Command("", string(action)+".tcl", "", c.kind.dialect, &Access{}).String()+"   # "+strings.Join(script, "; "))
}
