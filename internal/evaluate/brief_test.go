package evaluate_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// A run phase of a seventh of a second, as a rehearsal of a load that is bound by size can have: every result has its
// number, and the right one.
func TestBriefRunPhaseHasNumbers(t *testing.T) {
	const from, to = 10_024_000_000, 10_169_000_000
	events := []interval.Event{
		{AtNanos: from, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 10_050_000_000, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 10_151_000_000, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: to, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	load := second("g-0001", 0, 1000, time.Millisecond)
	load.StartNanos, load.LengthNanos, load.Final = 10_050_000_000, 100_000_000, true
	var samples []result.Sample
	for s := range int64(11) {
		samples = append(samples, reading(s*1e9+1e8, target.NodeSample{NodeID: "n1", Metric: "CpuUsage.Avg.Megahertz", Value: float64(s)})...)
	}
	b := record(t, events, []interval.Interval{load}, samples)
	result := func(kind string) scenario.Result {
		return scenario.Result{Name: kind, Source: scenario.FromGroup, Group: "g", Type: kind, Aggregate: "sum"}
	}
	s := evaluated(t, b, result("iops"), result("bandwidth"), result("latency"), result("errors"),
		scenario.Result{Name: "cpu", Source: scenario.FromMetric, Metric: "CpuUsage.Avg.Megahertz", Aggregate: "sum"})
	for i, want := range []float64{10_000, 4096 * 10_000, 1e6, 0, 10} {
		r := s.Results[i]
		if r.Missing != "" || len(r.Series) == 0 || !near(r.Stats[0].Mean, want) && r.Type != "errors" {
			t.Errorf("%s: want %v: missing %q, %+v", r.Name, want, r.Missing, r.Stats)
			continue
		}
		p := r.Series[0].Points
		if len(p) != 1 || p[0].Seconds*1e9 < from || p[0].Seconds*1e9 > to {
			t.Errorf("%s: points %v", r.Name, p)
		}
	}
}
