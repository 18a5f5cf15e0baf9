package pgbench

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/unit"
)

// plan describes a load or a prefill.
func (c *config) plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: c.engine(), BytesWritten: -1, Program: &load.ProgramPlan{Needs: append([]load.Need{postgres.Client("pgbench")}, c.server.Needs()...)}}
	data := postgres.Data{Text: fmt.Sprintf("scale %d, %s", c.scale, unit.FormatBytes(dataBytes(c.scale))), Bytes: dataBytes(c.scale), FullBytes: dataBytes(c.fullScale),
		Names: "tables pgbench_accounts, pgbench_branches, pgbench_history and pgbench_tellers"}
	if err := c.server.PlanData(w, &p, data); err != nil {
		return p, err
	}
	run := commands{Commands: c.server.Planned(), config: c, major: 15}
	own := c.server.Endpoint == ""
	if own && w.Prefill {
		postgres.Show(&p, run.Initdb())
	}
	if own {
		postgres.Show(&p, run.Postgres())
	}
	if w.Prefill {
		postgres.Show(&p, run.initialise())
		if !own {
			p.Notes = append(p.Notes, "the prefill replaces the tables pgbench_* of the endpoint")
		}
		p.BytesWritten = 2 * dataBytes(c.scale) // with the WAL
		return p, nil
	}
	postgres.Show(&p, run.load(w.Runtime))
	for i, s := range c.scripts {
		p.Jobs = append(p.Jobs, load.JobPlan{Name: s.name, Pattern: "transactions", QueueDepth: c.clients, DepthAsked: c.clients, Clones: 1,
			RateIOPS: c.rate * float64(s.weight) / float64(c.weights()), Reads: true, Writes: s.writes, Flushes: s.writes, Shares: i > 0})
	}
	c.advise(&p)
	return p, nil
}

func (c *config) weights() (sum int) {
	for _, s := range c.scripts {
		sum += s.weight
	}
	return sum
}

// connections are the clients of one server.
func (c *config) connections() int { return c.clients * c.server.ClientVMs() }

// contended reports whether clients wait for each other's rows: each transaction of tpcb-like updates one of as many rows as the scale.
func (c *config) contended() bool {
	return c.scale > 0 && c.scale < c.connections() && slices.ContainsFunc(c.scripts, func(s script) bool { return s.name == builtins[0].name })
}

// advise notes what makes the numbers of a load doubtful.
func (c *config) advise(p *load.Plan) {
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if c.rate > 0 && c.rate/float64(c.threads) < slowPerThread {
		note("at %g transactions/s per thread intervals arrive late: pgbench writes its log in blocks of 4 KiB", c.rate/float64(c.threads))
	}
}

// slowPerThread is the rate below which a block of the log takes more than holdMax to fill.
const slowPerThread = float64(4096/48) / (float64(holdMax) / float64(time.Second))
