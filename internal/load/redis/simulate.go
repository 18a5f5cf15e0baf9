package redis

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces redis-benchmark on VMs that exist in memory only: commands of a constant latency, without a server.
type Simulation struct{ Generator }

const simulatedLatency = 5 * time.Millisecond

// Plan is that of redis-benchmark, without what a server says of itself.
func (s Simulation) Plan(w load.Workload) (load.Plan, error) {
	p, err := s.Generator.Plan(w)
	p.Engine.Gauges = nil
	return p, err
}

// Prepare needs no programs.
func (Simulation) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	return &program.Simulated{Workload: w, Of: c.engine(), Clients: c.clients, Latency: simulatedLatency}, nil
}
