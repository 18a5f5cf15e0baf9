package traps

import (
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
)

// gigabits per second of the streams of a published test, in which one option in another place made the difference.
const (
	slowStream = 20.4
	fastStream = 78.3
)

// streams records a minute of a load of iperf3 on each VM, whose streams have these shares in gigabits per second.
func (s *scene) streams(shares ...float64) {
	w := load.Workload{Name: "load", Group: "g", VM: vmName(0), Instance: 1, Generator: iperf3.Name, Options: map[string]string{"streams": "2"}, Runtime: 60e9,
		Remote: load.Remote{Peers: []load.Peer{{VM: vmName(1), Address: "192.0.2.2", Port: 1}}}}
	p, err := iperf3.Generator{}.Plan(w)
	if err != nil {
		s.t.Fatal(err)
	}
	s.plan.Workloads = append(s.plan.Workloads, plan.Workload{Name: "load", Group: "g", Generator: iperf3.Name, Load: &p})
	s.manifest.Engines["load"] = p.Engine
	sum := 0.0
	for _, v := range shares {
		sum += v
	}
	gauges := interval.UnknownGauges(len(p.Engine.Gauges))
	at := slices.IndexFunc(p.Engine.Gauges, func(g interval.Gauge) bool { return g.Name == interval.GaugeStreamSpread })
	gauges[at] = (slices.Max(shares) - slices.Min(shares)) / (sum / float64(len(shares))) * 100
	s.begin("load")
	for vm := range s.vms {
		for n := range int64(60) {
			iv := interval.Interval{Workload: "load", Group: "g", VM: vmName(vm), Instance: 1, Sequence: n, StartNanos: s.at + n*second, LengthNanos: second,
				Final: n == 59, CPUNanos: second / 2, Gauges: gauges}
			iv.Directions[0].Bytes = uint64(sum * 1e9 / 8)
			iv.Directions[0].Operations = iv.Directions[0].Bytes >> 17
			s.intervals = append(s.intervals, iv)
		}
	}
	s.at += 60 * second
	s.end("load")
}

// TestStreams: a sum of 98.7 Gbit/s hides that one stream has 20.4 of them; one of about equal streams is what it looks like.
func TestStreams(t *testing.T) {
	for name, c := range map[string]struct {
		shares []float64
		found  bool
	}{
		"unequal":            {[]float64{slowStream, fastStream}, true},
		"equal":              {[]float64{fastStream, fastStream}, false},
		"as TCP shares them": {[]float64{0.7 * fastStream, fastStream}, false},
	} {
		s := newScene(t)
		s.streams(c.shares...)
		summary := s.evaluate(scenario.Result{Name: "rate", Source: scenario.FromGroup, Group: "g", Type: "bandwidth", Aggregate: "sum",
			Expect: []scenario.Threshold{{Statistic: "mean", Operator: ">", Value: 1e9, Text: "mean > 1 GB/s"}}})
		if found := slices.ContainsFunc(summary.Findings, func(f finding.Finding) bool { return f.Code == "unequal-streams" }); found != c.found || warned(summary) != c.found {
			t.Errorf("%s: %s %s", name, summary.Verdict, claims(summary))
		}
	}
}
