package iperf3

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces iperf3 on VMs that exist in memory only.
type Simulation struct{ Generator }

const simulatedLatency = time.Millisecond

// Plan is that of iperf3, without what its ends find.
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
	return &simulated{program.Simulated{Workload: w, Of: c.engine(len(w.Remote.Peers)), Clients: c.streams, Latency: simulatedLatency, Bytes: blockDefault}}, nil
}

// simulated is either end.
type simulated struct{ program.Simulated }

// Ports are made up; see load.Server.
func (s *simulated) Ports() []int {
	ports := make([]int, len(s.Workload.Remote.Peers))
	for i := range ports {
		ports[i] = 5201 + i // as the first port of iperf3
	}
	return ports
}
