package evaluate_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
)

// record is a run of 30 s: group g of two VMs, workload OLTP from second 0 to 30, a step that cuts node power from
// second 10 to 20. VM 1 does 100 operations a second of 1 ms; VM 2 does 200 of 2 ms and is dead from 12 to 17.
func record(t *testing.T, events []interval.Event, intervals []interval.Interval, samples []result.Sample) *result.Bundle {
	t.Helper()
	return recordPlanned(t, nil, events, intervals, samples)
}

// recordPlanned is record with a plan, where there is one.
func recordPlanned(t *testing.T, p *plan.Plan, events []interval.Event, intervals []interval.Interval, samples []result.Sample) *result.Bundle {
	t.Helper()
	engines := map[string]interval.Engine{"OLTP": {Name: "native", Loop: interval.LoopClosed, Backends: []string{"io_uring"}}}
	return recordDriven(t, engines, p, events, intervals, samples)
}

// recordDriven is recordPlanned with the engines of its workloads.
func recordDriven(t *testing.T, engines map[string]interval.Engine, p *plan.Plan, events []interval.Event, intervals []interval.Interval,
	samples []result.Sample) *result.Bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, result.Manifest{Run: "run", Created: time.Unix(1_700_000_000, 0), Engines: engines})
	if err != nil {
		t.Fatal(err)
	}
	if p != nil {
		if err := w.WritePlan(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range events {
		if err := w.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, iv := range intervals {
		if err := w.Interval(iv); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Sample(samples...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func second(vm string, s int, operations uint64, latency time.Duration) interval.Interval {
	iv := interval.Interval{Workload: "OLTP", Group: "g", VM: vm, Instance: 1, Sequence: int64(s),
		StartNanos: int64(s) * 1e9, LengthNanos: 1e9}
	h := &stat.Histogram{}
	h.RecordN(uint64(latency), operations)
	iv.Directions[interval.Read] = interval.Traffic{Operations: operations, Bytes: 4096 * operations, Service: h}
	return iv
}

func powerLoss(t *testing.T) *result.Bundle {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 0, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 10e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "nodes.PowerOff", StepID: 3},
		{AtNanos: 20e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "nodes.PowerOff", StepID: 3},
		{AtNanos: 30e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 30 {
		intervals = append(intervals, second("g-0001", s, 100, time.Millisecond))
		if s < 12 || s >= 17 {
			iv := second("g-0002", s, 200, 2*time.Millisecond)
			if s >= 17 {
				iv.Sequence -= 5 // a VM without power has no intervals: none is lost
			}
			intervals = append(intervals, iv)
		}
	}
	return record(t, events, intervals, nil)
}

func evaluated(t *testing.T, b *result.Bundle, results ...scenario.Result) result.Summary {
	t.Helper()
	s, err := evaluate.Run(context.Background(), evaluate.Input{
		Bundle: b, Scenario: &scenario.Scenario{Results: results}, Ended: result.EndedCompleted,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(got result.Number, want float64) bool {
	return math.Abs(float64(got)-want) <= 1e-6*math.Abs(want)
}

func TestGroupTrafficByHand(t *testing.T) {
	s := evaluated(t, powerLoss(t),
		scenario.Result{Name: "iops", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum"},
		scenario.Result{Name: "each", Source: scenario.FromGroup, Group: "g", Type: "iops"})
	var names []string
	for _, w := range s.Windows {
		names = append(names, w.Name)
	}
	if len(names) != 3 || names[0] != "before nodes.PowerOff" || names[1] != "during nodes.PowerOff" || names[2] != "after nodes.PowerOff" {
		t.Fatalf("windows: %q", names)
	}
	all := s.Results[0]
	// 25 seconds of 300 and 5 of 100; the window during the step has 5 of each.
	want := []struct {
		window    string
		count     uint64
		mean, min float64
	}{{"", 30, (25*300 + 5*100) / 30.0, 100}, {names[0], 10, 300, 300}, {names[1], 10, 200, 100}, {names[2], 10, 300, 300}}
	if len(all.Stats) != len(want) {
		t.Fatalf("%d rows of statistics: %+v", len(all.Stats), all.Stats)
	}
	for i, w := range want {
		got := all.Stats[i]
		if got.Window != w.window || got.Count != w.count || !near(got.Mean, w.mean) || !near(got.Min, w.min) {
			t.Errorf("row %d: got %+v, want %+v", i, got, w)
		}
	}
	if p := all.Series[0].Points[0]; p.Seconds != 0.5 || p.Value != 300 {
		t.Errorf("first point %+v", p)
	}
	dead := s.Results[1].Series[1]
	if dead.Name != "g-0002" || !math.IsNaN(dead.Points[12].Value) || dead.Points[17].Value != 200 {
		t.Errorf("a dead VM is a gap: %+v", dead.Points[10:18])
	}
	if got := s.Results[1].Stats; got[4].Series != "g-0002" || got[4].Gaps != 5 || got[4].Count != 25 {
		t.Errorf("gaps are counted: %+v", got[4])
	}
}

func TestLatencyIsOfMergedOperations(t *testing.T) {
	s := evaluated(t, powerLoss(t), scenario.Result{Name: "lat", Source: scenario.FromGroup, Group: "g", Type: "latency",
		Aggregate: "mean", Expect: []scenario.Threshold{
			{Statistic: "p99", Operator: "<", Value: 3e6, Text: "p99 < 3ms"},
			{Statistic: "mean", Operator: "<", Value: 1.5e6, Text: "mean < 1.5ms", Window: "during nodes.PowerOff"},
		}})
	r := s.Results[0]
	// 3000 operations of 1 ms and 5000 of 2 ms.
	if got := r.Stats[0]; got.Count != 8000 || !near(got.Mean, 13e6/8) || got.Kind != "service" {
		t.Errorf("whole: %+v", got)
	}
	// During the step: 1000 of 1 ms, 5 s × 200 of 2 ms.
	if got := r.Stats[2]; got.Count != 2000 || !near(got.Mean, 1.5e6) {
		t.Errorf("during: %+v", got)
	}
	if got := r.Series[0].Points[14].Value; got != 1e6 {
		t.Errorf("mean in second 14: %v", got)
	}
	if !r.Checks[0].Passed || r.Checks[1].Passed || s.Verdict != result.Failed || s.Reason != `"mean < 1.5ms" of "lat" was not met: measured 1.5 ms.` {
		t.Errorf("checks %+v, verdict %s: %s", r.Checks, s.Verdict, s.Reason)
	}
}

// TestTooFewPointsForAPercentile: of 30 points there is p95 and no p99.
func TestTooFewPointsForAPercentile(t *testing.T) {
	s := evaluated(t, powerLoss(t), scenario.Result{Name: "iops", Source: scenario.FromGroup, Group: "g", Type: "iops",
		Aggregate: "sum", Expect: []scenario.Threshold{
			{Statistic: "p95", Operator: "<", Value: 301, Text: "p95 < 301"},
			{Statistic: "p99", Operator: "<", Value: 301, Text: "p99 < 301"},
		}})
	known, unknown := s.Results[0].Checks[0], s.Results[0].Checks[1]
	if !known.Passed || known.Reason != "" || known.Value != 300 {
		t.Errorf("p95 of 30 points: %+v", known)
	}
	if unknown.Passed || unknown.Reason != "too few values for p99 (needs 100)" || !math.IsNaN(float64(unknown.Value)) {
		t.Errorf("p99 of 30 points: %+v", unknown)
	}
	if s.Verdict != result.Undecided || !strings.Contains(s.Reason, unknown.Reason) {
		t.Errorf("verdict %s: %s", s.Verdict, s.Reason)
	}
}
