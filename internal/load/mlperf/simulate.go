package mlperf

import (
	"context"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces the generator on VMs that exist in memory only: samples at the rate of accelerators with a constant AU, without
// files.
type Simulation struct{ Generator }

// simulatedAU is that of all simulated accelerators.
const simulatedAU = 0.95

// Plan is that of the generator, without gauges.
func (s Simulation) Plan(w load.Workload) (load.Plan, error) {
	p, err := s.Generator.Plan(w)
	p.Engine.Gauges, p.Engine.Operations = nil, simulatedOperations(p.Engine.Operations)
	return p, err
}

// simulatedOperations are those without the files of a prefill.
func simulatedOperations(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == trainingOperations[opFile] })
}

// Prepare needs no folder.
func (Simulation) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	of := c.engine()
	if c.saves() {
		return &program.Simulated{Workload: w, Of: of, Clients: c.saving.ranks, Latency: time.Second, Bytes: uint64(c.saving.rankBytes())}, nil
	}
	of.Operations = simulatedOperations(of.Operations)
	clients := c.train.accelerators
	latency := time.Duration(float64(c.train.on.compute) / float64(c.train.on.batch) / simulatedAU)
	return &program.Simulated{Workload: w, Of: of, Clients: clients, Latency: latency, Bytes: uint64(c.train.model.recordBytes)}, nil
}
