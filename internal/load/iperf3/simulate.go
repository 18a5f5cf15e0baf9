package iperf3

import (
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces iperf3 on VMs that exist in memory only.
var Simulation = program.Simulation{Generator: Generator{}, Of: func(w *load.Workload) (program.Simulated, error) {
	c, err := parse(w)
	if err != nil {
		return program.Simulated{}, err
	}
	return program.Simulated{Of: c.engine(len(w.Remote.Peers)), Clients: c.streams, Latency: simulatedLatency, Bytes: blockDefault}, nil
}}

const simulatedLatency = time.Millisecond
