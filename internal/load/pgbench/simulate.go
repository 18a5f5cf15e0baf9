package pgbench

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// Simulation replaces pgbench on VMs that exist in memory only: transactions of a constant latency, without a database.
type Simulation struct{ Generator }

const (
	simulatedLatency = 5 * time.Millisecond
	simulatedPrefill = time.Second
)

// Plan is that of pgbench, without what a server says of itself.
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
	return &simulated{workload: w, config: c}, nil
}

type simulated struct {
	workload load.Workload
	config   *config
}

// Engine names the simulation.
func (s *simulated) Engine() interval.Engine {
	e := s.config.engine()
	e.Gauges = nil
	e.Notes = append(e.Notes, interval.EngineNote{Code: "simulated", Text: "no database answers"})
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (s *simulated) SetTime(zeroUnixNanos, startNanos int64) {
	s.workload.ZeroUnixNanos, s.workload.StartNanos = zeroUnixNanos, startNanos
}

// Close has nothing to release.
func (s *simulated) Close() error { return nil }

// Run lets time pass; see load.Instance.
func (s *simulated) Run(ctx context.Context, sink load.Sink) error {
	w, c := s.workload, s.config
	axis := program.NewAxis(w.ZeroUnixNanos)
	if w.StartNanos > 0 {
		_ = wait.For(ctx, time.Duration(w.StartNanos-axis.Now()))
	}
	out := &recorder{workload: w, config: c, sink: sink}
	at := axis.Now()
	out.extend(at)
	runtime := w.Runtime
	if w.Prefill {
		runtime = simulatedPrefill
	}
	end := at + int64(runtime)
	gap := int64(simulatedLatency) / int64(c.clients)
	if c.rate > 0 {
		gap = int64(float64(time.Second) / c.rate)
	}
	due := at + int64(simulatedLatency)
	for n, now := 0, at; ctx.Err() == nil && (runtime == 0 || now < end); {
		now = axis.Now()
		for ; !w.Prefill && due < now && (runtime == 0 || due < end); due += max(gap, 1) {
			out.add(transaction{script: n % len(c.scripts), end: due, latency: int64(simulatedLatency)})
			n++
		}
		out.release(now)
		_ = wait.For(ctx, min(lookEvery, out.period()/2, max(time.Millisecond, time.Duration(end-now))))
	}
	out.finish(min(axis.Now(), max(end, at)))
	return nil
}
