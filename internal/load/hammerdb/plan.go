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
	n := c.test.Warehouses
	bytes := c.kind.dataBytes(n)
	data := database.Data{Text: fmt.Sprintf("%d warehouses, %s", n, unit.FormatBytes(bytes)), Bytes: bytes, FullBytes: c.kind.dataBytes(c.fullCount)}
	if err := c.server.PlanData(w, &p, data); err != nil {
		return p, err
	}
	own := c.endpoint == ""
	for _, command := range c.server.planned(w.Prefill) {
		p.Program.Commands = append(p.Program.Commands, command.String())
	}
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if w.Prefill {
		c.show(&p, Build)
		c.show(&p, Check)
		p.BytesWritten = 2 * bytes // with the log
		if !own {
			note("the prefill replaces the tables of HammerDB in the endpoint")
		}
		return p, nil
	}
	c.show(&p, Run)
	p.Jobs = []load.JobPlan{{Name: opNewOrder, Pattern: "transactions", QueueDepth: c.test.Users, DepthAsked: c.test.Users, Clones: 1, Reads: true, Writes: true, Flushes: true}}
	p.TakesLeast, p.TakesMost, p.Timed = c.takes(), c.takes(), true
	switch takes := c.takes(); {
	case c.cut:
		note("HammerDB measures whole minutes, and the load is shorter: it is ended without a result of HammerDB's own")
	case w.Runtime > takes:
		note("HammerDB measures whole minutes: the load ends after %v", takes)
	}
	if own {
		note("the clients run on the VM of the server and share its CPUs")
	}
	if c.test.Users > n && !c.test.AllWarehouses {
		note("%d users share %d warehouses and wait for each other's locks", c.test.Users, n)
	}
	return p, nil
}

// show adds a call of HammerDB to a plan, with its script.
func (c *config) show(p *load.Plan, action Action) {
	script := slices.Collect(strings.Lines(c.test.Script(action)))
	for i := range script {
		script[i] = strings.TrimSpace(script[i])
	}
	p.Program.Commands = append(p.Program.Commands, Command("", string(action)+".tcl", "", c.kind.dialect, &Access{}).String()+"   # "+strings.Join(script, "; "))
}
