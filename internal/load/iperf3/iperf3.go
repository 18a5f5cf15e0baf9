// Package iperf3 is the generator that runs the real iperf3 between two groups of VMs. Bragg neither links nor contains it.
//
//	server VM:  iperf3 -s, one for each pair, on a free port ──Ports──▶ clients
//	client VM:  iperf3 -c for each server ──text with --debug──▶ reports ──▶ Intervals; its results of both ends must have the same totals
//
//	options.go, plan.go   what a workload asks for; its plan and commands
//	output.go             what a client prints: reports and results
//	serve.go, run.go      the two ends of a running load
//	record.go             reports to intervals and gauges
//	simulate.go           for VMs in memory
//
// Version 3.12 prints JSON only at its end, and rounds what it prints as text. With --debug=1 it prints bytes and lengths of all
// intervals of all streams, exactly and when they end, and the results that both ends exchange. These are what counts here.
package iperf3

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Name is the name of the generator.
const Name = "iperf3"

// Generator runs iperf3.
type Generator struct{}

var _ load.Generator = Generator{}

// oldest is a version that takes --debug=1: 3.9 refuses it, and its --debug prints a line for each packet.
const oldest = "3.12"

var needs = []load.Need{{Program: Name, Oldest: oldest, Packages: []load.Package{
	{Family: load.Debian, Name: "iperf3"}, {Family: load.RedHat, Name: "iperf3"}, {Family: load.SUSE, Name: "iperf"}}}}

// Operations of a load, as its clients count them.
const (
	sent     = 0
	received = 1
)

// Plan returns the commands that would run.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	c, err := parse(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return c.plan(&w), nil
}

// Prepare finds the program. Servers listen when it returns.
func (Generator) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	c, err := parse(&w)
	if err != nil {
		return nil, err
	}
	tools, err := program.Find(ctx, needs)
	if err != nil {
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	end := end{workload: w, config: c, tool: tools[Name], said: program.NewTranscript(load.OutputBytesMax)}
	if !w.Remote.Serves {
		if len(w.Remote.Peers) == 0 {
			return nil, fmt.Errorf("prepare workload %q: it has no server", w.Name)
		}
		return &client{end: end}, nil
	}
	s := &server{end: end}
	if err := s.listen(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("prepare workload %q: %w", w.Name, err)
	}
	return s, nil
}

// end is what clients and servers share.
type end struct {
	workload load.Workload
	config   *config
	tool     program.Tool
	said     *program.Transcript
}

// Engine describes the program of this VM; see load.Describer.
func (e *end) Engine() interval.Engine {
	engine := e.config.engine(len(e.workload.Remote.Peers))
	engine.Version = e.tool.Version
	return engine
}

// SetTime places the workload on the run's axis; see load.Timed.
func (e *end) SetTime(zeroUnixNanos, startNanos int64) {
	e.workload.ZeroUnixNanos, e.workload.StartNanos = zeroUnixNanos, startNanos
}
