package program

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/wait"
)

// Simulated replaces a program on VMs that exist in memory only: operations of a constant latency, of each kind in turn.
type Simulated struct {
	Workload load.Workload
	Of       interval.Engine // the program that it replaces
	Clients  int             // at least 1
	Rate     float64         // operations per second; 0: as many as the clients complete
	Latency  time.Duration   // of each operation
	Bytes    uint64          // that each operation moves
}

var (
	_ load.Instance  = (*Simulated)(nil)
	_ load.Describer = (*Simulated)(nil)
	_ load.Timed     = (*Simulated)(nil)
	_ load.Server    = (*Simulated)(nil)
)

const (
	simulatedLook    = 200 * time.Millisecond
	simulatedPrefill = time.Second
)

// Engine is that of the program, without gauges, with a note that it is simulated.
func (s *Simulated) Engine() interval.Engine {
	e := s.Of
	e.Gauges = nil
	e.Notes = append(e.Notes[:len(e.Notes):len(e.Notes)], interval.EngineNote{Code: "simulated", Text: e.Name + " does not run"})
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (s *Simulated) SetTime(zeroUnixNanos, startNanos int64) {
	s.Workload.ZeroUnixNanos, s.Workload.StartNanos = zeroUnixNanos, startNanos
}

// Ports of a server are made up; see load.Server.
func (s *Simulated) Ports() []int {
	ports := make([]int, len(s.Workload.Remote.Peers))
	for i := range ports {
		ports[i] = simulatedPort + i
	}
	return ports
}

const simulatedPort = 5201

// Close has nothing to release.
func (s *Simulated) Close() error { return nil }

// Run lets time pass; see load.Instance.
func (s *Simulated) Run(ctx context.Context, sink load.Sink) error {
	w := s.Workload
	axis := NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	out := &Recorder{Workload: w, Sink: sink, Rated: s.Rate > 0, Clients: s.Clients}
	at := axis.Now()
	out.Begin(at)
	runtime := w.Runtime
	if w.Prefill {
		runtime = simulatedPrefill
	}
	end := at + int64(runtime)
	gap := int64(s.Latency) / int64(s.Clients)
	if s.Rate > 0 {
		gap = int64(float64(time.Second) / s.Rate)
	}
	due, kinds := at+int64(s.Latency), max(1, len(s.Of.Operations))
	for n, now := 0, at; ctx.Err() == nil && (runtime == 0 || now < end); {
		now = axis.Now()
		for ; !w.Prefill && due < now && (runtime == 0 || due < end); due += max(gap, 1) {
			out.Add(Operation{Kind: n % kinds, End: due, Latency: int64(s.Latency), Bytes: s.Bytes})
			n++
		}
		out.Release(now)
		_ = wait.For(ctx, min(simulatedLook, out.Period()/2, max(time.Millisecond, time.Duration(end-now))))
	}
	out.Finish(min(axis.Now(), max(end, at)))
	return nil
}

// Simulation is the generator of a program on VMs that exist in memory only. Its plan is the program's, without gauges.
type Simulation struct {
	load.Generator
	// Of describes the load of a workload, or returns what is wrong with it. It may change the workload's runtime.
	Of func(w *load.Workload) (Simulated, error)
}

// Plan plans the program.
func (s Simulation) Plan(w load.Workload) (load.Plan, error) {
	p, err := s.Generator.Plan(w)
	p.Engine.Gauges = nil
	return p, err
}

// Prepare needs no program.
func (s Simulation) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	in, err := s.Of(&w)
	if err != nil {
		return nil, err
	}
	in.Workload = w
	return &in, nil
}
