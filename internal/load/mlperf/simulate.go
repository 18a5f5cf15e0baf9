package mlperf

import (
	"context"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// Simulation replaces the generator on VMs that exist in memory only: samples at the rate of accelerators with a constant AU, without
// files.
type Simulation struct{ Generator }

const (
	// simulatedAU is that of all simulated accelerators.
	simulatedAU = 0.95
	// simulatedRank is how long a rank writes or reads its file.
	simulatedRank = time.Second
)

// Plan is that of the generator.
func (s Simulation) Plan(w load.Workload) (load.Plan, error) {
	p, err := s.Generator.Plan(w)
	p.Engine.Operations = simulatedOperations(p.Engine.Operations)
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
	of := c.engine(&w.Remote)
	of.Operations = simulatedOperations(of.Operations)
	s := &simulated{Simulated: program.Simulated{Workload: w, Of: of}, gauges: of.Gauges}
	if c.saves() {
		mine := c.saving.of(w.Remote.Rank)
		s.Clients, s.Latency, s.Bytes = mine.count, simulatedRank, uint64(c.saving.rankBytes())
		own, whole := rate(c.saving.rankBytes()*int64(mine.count), int64(simulatedRank))/1e6, rate(c.saving.bytes(), int64(simulatedRank))/1e6
		if s.values = (interval.GaugeValues{own, own}); inStep(&w.Remote) {
			s.values = append(s.values, whole, whole, 0)
		}
		return s, nil
	}
	t := &c.train
	s.Clients, s.Bytes = t.accelerators, uint64(t.model.recordBytes)
	s.Latency = time.Duration(float64(t.on.compute) / float64(t.on.batch) / simulatedAU)
	samples := simulatedAU * t.on.samplesPerSecond() * float64(t.accelerators)
	s.values = interval.GaugeValues{gaugeAU: 100 * simulatedAU, gaugeEpochs: 100 * simulatedAU, gaugeSamples: samples,
		gaugeRate: samples * t.model.recordBytes / 1e6, gaugeWait: t.on.compute.Seconds() * 1e3 * (1/simulatedAU - 1), gaugeAccelerators: float64(t.accelerators)}
	if inStep(&w.Remote) {
		s.values = append(s.values, 0, 0, 100*simulatedAU, samples*float64(w.Remote.VMs))
	}
	if t.search {
		s.values = append(s.values, float64(t.accelerators))
	}
	return s, nil
}

// simulated adds constant gauges.
type simulated struct {
	program.Simulated
	gauges []interval.Gauge
	values interval.GaugeValues
}

// Engine says that it is simulated; see load.Describer.
func (s *simulated) Engine() interval.Engine {
	e := s.Simulated.Engine()
	e.Gauges = s.gauges
	return e
}

// Run lets time pass; see load.Instance.
func (s *simulated) Run(ctx context.Context, sink load.Sink) error {
	return s.Simulated.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		iv.Gauges = slices.Clone(s.values)
		sink.Interval(iv)
	}))
}
