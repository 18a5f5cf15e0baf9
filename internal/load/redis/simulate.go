package redis

import (
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces redis-benchmark on VMs that exist in memory only: commands of a constant latency, without a server.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	return program.Simulated{Of: c.engine(), Clients: c.clients, Latency: simulatedLatency}, nil
}}

const simulatedLatency = 5 * time.Millisecond
