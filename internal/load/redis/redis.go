// Package redis is the generator that runs the real redis-benchmark against a Redis server that it starts on the VM, or an endpoint. Bragg
// neither links nor contains Redis.
//
//	prefill:  redis-server ▶ redis-cli (all keys) ▶ a snapshot on the disk ▶ stop
//	load:     redis-server, which reads its data ▶ redis-benchmark in rounds ──its distribution──▶ Intervals
//
//	options.go, plan.go   what a workload asks for; its plan and commands
//	server.go, series.go  the server of a load; what it says of itself
//	endpoint.go, relay.go a server elsewhere, which clients reach by a socket of this process
//	run.go, output.go     a running load; what redis-benchmark prints
//	simulate.go           for VMs in memory
//
// redis-benchmark ends after a number of requests and not after a time, and prints latencies only at its end. A load is therefore a series
// of rounds of about half an interval, each with its own process. What a round prints is a cumulative distribution of all its requests,
// which becomes the histogram of its interval. The loop is closed: redis-benchmark has no rate. At the end, the server must have executed
// as many commands as the rounds report.
package redis

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "redis"

// Generator runs redis-benchmark.
type Generator struct{}

var _ load.Generator = Generator{}

// oldest is the first version that prints its distribution with microseconds. Only version 7.0 is tested.
const oldest = "7.0"

func need(name, debian string) load.Need {
	return load.Need{Program: name, Oldest: oldest, Packages: []load.Package{
		{Family: load.Debian, Name: debian}, {Family: load.RedHat, Name: "redis"}, {Family: load.SUSE, Name: "redis"}}}
}

// needs are the programs of a load.
func (c *config) needs() (list []load.Need) {
	if c.place.Endpoint == "" {
		list = append(list, need("redis-server", "redis-server"))
	}
	return append(list, need("redis-benchmark", "redis-tools"), need("redis-cli", "redis-tools"))
}

// folders are where packages keep programs whose name is a link to another one.
var folders = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin"}

// account owns servers where the agent is root. The package of Redis brings it. Clients of an endpoint do not need that package.
const (
	account        = "redis"
	accountClients = "daemon"
)

// Plan returns the commands that would run and the data that they need.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return c.plan(&w)
}

// Prepare finds the programs and, for a load, starts the server. A prefill writes only once it runs.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	in := &instance{workload: w, config: c, said: program.NewTranscript(load.OutputBytesMax)}
	if err := in.prepare(ctx); err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return in, nil
}

// engine describes the load before the versions on the VM are known.
func (c *config) engine() interval.Engine {
	return interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: c.commands, Gauges: gauges}
}
