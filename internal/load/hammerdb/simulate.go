package hammerdb

import (
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces HammerDB on VMs that exist in memory only: orders of a constant latency, without a database.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	if c.queries != nil {
		if w.Runtime == 0 {
			w.Runtime = simulatedQuery * queryCount * time.Duration(c.queries.Sets)
		}
		return program.Simulated{Of: c.engine(), Clients: c.users(), Latency: simulatedQuery}, nil
	}
	if w.Runtime == 0 {
		w.Runtime = c.takes()
	}
	return program.Simulated{Of: c.engine(), Clients: c.users(), Latency: simulatedLatency}, nil
}}

const (
	simulatedLatency = 5 * time.Millisecond
	simulatedQuery   = 500 * time.Millisecond
)
