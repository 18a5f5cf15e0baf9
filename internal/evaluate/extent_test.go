package evaluate_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/target"
)

// piece is an interval of a load between two times in seconds.
func piece(workload, vm string, from, to float64, operations uint64) interval.Interval {
	iv := interval.Interval{Workload: workload, Group: "g", VM: vm, Instance: 1,
		StartNanos: int64(math.Round(from * 1e9)), LengthNanos: int64(math.Round((to - from) * 1e9))}
	h := &stat.Histogram{}
	h.RecordN(uint64(time.Millisecond), operations)
	iv.Directions[interval.Write] = interval.Traffic{Operations: operations, Bytes: 4096 * operations, Service: h}
	return iv
}

// afterSetup is a run phase from 5.17 to 15.4 s, after a setup with a prefill that ends at 5.13 s, a warm-up, and a load
// that continues into the run phase and beyond it.
func afterSetup(t *testing.T) *result.Bundle {
	const from, to = 5_170_000_000, 15_400_000_000
	at := func(seconds float64, kind interval.EventKind, phase, workload string) interval.Event {
		return interval.Event{AtNanos: int64(seconds * 1e9), Kind: kind, Phase: phase, Workload: workload, Group: "g", Instance: 1}
	}
	events := []interval.Event{
		{Kind: interval.EventPhaseStarted, Phase: "setup"},
		at(1, interval.EventWorkloadStart, "setup", "Warm-up"), at(3.2, interval.EventWorkloadEnd, "setup", "Warm-up"),
		at(3.5, interval.EventWorkloadStart, "setup", "Beside"),
		{AtNanos: from - 1e6, Kind: interval.EventPhaseEnded, Phase: "setup"},
		{AtNanos: from, Kind: interval.EventPhaseStarted, Phase: "run"},
		at(5.18, interval.EventWorkloadStart, "run", "OLTP"), at(15.3, interval.EventWorkloadEnd, "run", "OLTP"),
		{AtNanos: 10e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "nodes.PowerOff", StepID: 7},
		{AtNanos: 10.1e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "nodes.PowerOff", StepID: 7},
		{AtNanos: to, Kind: interval.EventPhaseEnded, Phase: "run"},
		at(17.5, interval.EventWorkloadEnd, "teardown", "Beside"),
	}
	prefill := piece("OLTP", "g-0001", 4.93, 5.13, 47) // 236 IOPS in the second in which the run phase begins
	prefill.Prefill, prefill.Final = true, true
	intervals := []interval.Interval{
		piece("Warm-up", "g-0001", 1, 2, 900), piece("Warm-up", "g-0001", 2, 3, 901), piece("Warm-up", "g-0001", 3, 3.2, 180), prefill,
		piece("Beside", "g-0002", 3.5, 4, 800), piece("Beside", "g-0002", 4, 5, 1600), piece("Beside", "g-0002", 5, 6, 500),
		piece("OLTP", "g-0001", 5.18, 6, 49),
	}
	for s := 6; s < 15; s++ {
		intervals = append(intervals, piece("OLTP", "g-0001", float64(s), float64(s+1), 60), piece("Beside", "g-0002", float64(s), float64(s+1), 40))
	}
	beyond := piece("Beside", "g-0002", 15, 16, 700)
	beyond.Directions[interval.Write].Errors = map[string]uint64{"EIO": 3}
	intervals = append(intervals, piece("OLTP", "g-0001", 15, 15.3, 18), beyond,
		piece("Beside", "g-0002", 16, 17, 1700), piece("Beside", "g-0002", 17, 17.5, 900))
	var samples []result.Sample
	for s := range int64(20) {
		busy := 100.0
		if s <= 5 { // the reading at 5.9 covers the time from 4.9
			busy = 9000
		}
		samples = append(samples, reading(s*1e9+9e8, target.NodeSample{NodeID: "n1", Metric: "CpuUsage.Avg.Megahertz", Value: busy},
			target.NodeSample{NodeID: "n1", Metric: "CpuUsage.Avg.Percent", Value: busy / 40})...)
	}
	return record(t, events, intervals, samples)
}

// Nothing of prefill, setup and teardown is in a result of the run phase.
func TestResultsAreOfTheirTimeAlone(t *testing.T) {
	group := func(kind, aggregate string) scenario.Result {
		return scenario.Result{Name: kind + " " + aggregate, Source: scenario.FromGroup, Group: "g", Type: kind, Aggregate: aggregate}
	}
	s := evaluated(t, afterSetup(t), group("iops", "sum"), group("iops", ""), group("bandwidth", "sum"), group("latency", "mean"),
		scenario.Result{Name: "cpu", Source: scenario.FromMetric, Metric: "CpuUsage.Avg.Megahertz"},
		scenario.Result{Name: "errors", Source: scenario.FromWorkload, Workload: "Beside", Type: "errors", Aggregate: "sum", ReportMetrics: []string{"AnyFail"}})
	agrees(t, &s)
	if got := s.Results[4].Full; got != 4000 {
		t.Errorf("100 %% of the CPU are %v MHz, want 4000", got)
	}
	for i, most := range []float64{100, 60, 4096 * 100, 1.01e6, 100} {
		if got := float64(s.Results[i].Stats[0].Max); got > most {
			t.Errorf("%s: at most %v, want %v: %v", s.Results[i].Name, got, most, numbers(s.Results[i].Series[0].Points))
		}
	}
	// Of 5.18 to 15.3 each 60 of OLTP but the first and last; Beside 40 a second in whole seconds of the run phase.
	if got := s.Results[3].Stats[0].Count; got != 49+9*60+18+9*40 {
		t.Errorf("latency is of %d operations", got)
	}
	if m := s.Results[5].Metrics; len(m) != 1 || m[0].Pass == nil || *m[0].Pass {
		t.Errorf("failures at the end of the run phase are lost: %+v", m)
	}
}

// A mask of a workload that setup started shows it, as X-Ray does: the whole of its run.
func TestMaskOfASetupWorkload(t *testing.T) {
	masked := func(mask, kind, aggregate string) scenario.Result {
		return scenario.Result{Name: mask + " " + kind, Source: scenario.FromGroup, Group: "g", Mask: mask, Type: kind, Aggregate: aggregate}
	}
	s := evaluated(t, afterSetup(t), masked("Warm-up", "iops", "sum"), masked("Beside", "iops", "max"), masked("Warm-up", "latency", "mean"),
		masked("OLTP", "iops", "sum"))
	agrees(t, &s)
	if got := numbers(s.Results[0].Series[0].Points); !slices.Equal(got[:2], []string{"1.5:900", "2.5:901"}) {
		t.Errorf("warm-up: %v, missing %q", got, s.Results[0].Missing)
	}
	if got := numbers(s.Results[1].Series[0].Points); got[0] != "3.5:1600" || got[1] != "4.5:1600" || s.Results[1].Stats[0].Max != 1700 {
		t.Errorf("beside, from setup to teardown: %v", got)
	}
	if got := s.Results[2].Stats[0].Count; got != 900+901+180 {
		t.Errorf("latency of the warm-up: %d operations", got)
	}
	if got := float64(s.Results[3].Stats[0].Max); got > 100 {
		t.Errorf("all traffic while OLTP ran: %v", numbers(s.Results[3].Series[0].Points))
	}
}

// agrees checks that the points of a chart match the rows of its table: same points, same time range, window by window.
func agrees(t *testing.T, s *result.Summary) {
	t.Helper()
	windows := map[string]result.Window{}
	for _, w := range s.Windows {
		windows[w.Name] = w
	}
	for _, r := range s.Results {
		if len(r.Series) == 0 {
			t.Errorf("%s: %s", r.Name, r.Missing)
		}
		for _, line := range r.Series {
			for _, p := range line.Points {
				if at := p.Seconds * 1e9; !math.IsNaN(p.Value) && (at < float64(r.FromNanos) || at > float64(r.ToNanos)) {
					t.Errorf("%s: a point at %v s in a result from %v to %v", r.Name, p.Seconds, r.FromNanos, r.ToNanos)
				}
			}
			for _, st := range r.Stats {
				if st.Series != line.Name || r.Type == "latency" || st.Window != "" {
					continue
				}
				drawn := analysis.PointStats(line.Points, r.FromNanos, r.ToNanos)
				mean := near(drawn.Mean, float64(st.Mean)) // or, of a rate, exact where the points leave out partial seconds
				mean = mean || (r.Type == "iops" || r.Type == "bandwidth") && math.Abs(float64(drawn.Mean/st.Mean-1)) < 0.01
				if drawn.Count != st.Count || !near(drawn.Min, float64(st.Min)) || !near(drawn.Max, float64(st.Max)) || !mean {
					t.Errorf("%s %s: the chart has %d points of %v to %v, mean %v; the table says %+v", r.Name, line.Name, drawn.Count, drawn.Min, drawn.Max, drawn.Mean, st)
				}
			}
		}
		for _, st := range r.Stats {
			whole := r.Stats[slices.IndexFunc(r.Stats, func(o result.Stats) bool { return o.Window == "" && o.Series == st.Series && o.Kind == st.Kind })]
			if st.Count > 0 && (st.Min < whole.Min || st.Max > whole.Max || st.Count > whole.Count) {
				t.Errorf("%s: window %q has what the whole has not: %+v, %+v", r.Name, st.Window, st, whole)
			}
		}
	}
}

// The rates of device counters look back; the first one of a result may not look into setup.
func TestDeviceCountersOfTheRunPhaseAlone(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "setup"}, {AtNanos: 21.2e9, Kind: interval.EventPhaseEnded, Phase: "setup"},
		{AtNanos: 21.2e9, Kind: interval.EventPhaseStarted, Phase: "run"}, {AtNanos: 60e9, Kind: interval.EventPhaseEnded, Phase: "run"}}
	var samples []result.Sample
	done := 0.0
	for s := int64(0); s < 60; s += 5 {
		if s <= 20 {
			done += 5 * 1614
		} else {
			done += 5 * 60
		}
		for _, name := range []string{"node_disk_reads_completed_total", "node_disk_writes_completed_total", "node_disk_read_time_seconds_total",
			"node_disk_write_time_seconds_total"} {
			samples = append(samples, result.Sample{AtNanos: s * 1e9, Name: name, Value: done / 2,
				Labels: map[string]string{"vm": "g-0001", "vm_group": "g", "device": "vda", "instance": "i", "job": "vm"}})
		}
	}
	b := record(t, events, nil, samples)
	store, err := metric.Rebuild(context.Background(), b, filepath.Join(t.TempDir(), metric.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Metrics: store, Ended: result.EndedCompleted,
		Scenario: &scenario.Scenario{Results: []scenario.Result{{Name: "iops", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum"},
			{Name: "latency", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean",
				Expect: expects(t, "latency", "p99 < 60 s", "median < 60 s", "mean < 60 s", "max < 60 s", "interval_mean < 60 s")},
			{Name: "query", Source: scenario.FromQuery, Type: "generic", Query: "sum(irate(node_disk_read_time_seconds_total[30s]))",
				Expect: expects(t, "generic", "mean < 1000", "p95 < 1000", "max < 1000")},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	agrees(t, &s)
	r := s.Results[0]
	if !strings.Contains(r.Source, "Device counters") || len(r.Stats) == 0 || r.Stats[0].Max != 60 || r.Stats[0].Count < 20 {
		t.Errorf("%s: %s %v", r.Source, fmt.Sprint(r.Missing), r.Stats)
	}
	latency := s.Results[1]
	if !latency.Averages || r.Averages || len(latency.Stats) == 0 {
		t.Fatalf("latency: %+v", latency)
	}
	for i, c := range latency.Checks {
		if decided := strings.HasPrefix(c.Text, "interval_"); c.Passed != decided || decided == (c.Reason != "") {
			t.Errorf("check %d of averages: %+v", i, c)
		}
	}
	for i, c := range s.Results[2].Checks {
		if mean := i == 0; c.Passed != mean || mean == (c.Reason != "") {
			t.Errorf("check %d of a query of averages: %+v", i, c)
		}
	}
	pin(t, b, &s, 1, 1.01, 0.99)
	again, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Metrics: store, Ended: result.EndedCompleted,
		Scenario: &scenario.Scenario{Results: []scenario.Result{{Name: "latency", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean",
			Expect: expects(t, "latency", "mean no worse than baseline")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if c := again.Results[0].Checks[0]; c.Passed || !strings.Contains(c.Reason, "mean") {
		t.Errorf("averages against a baseline: %+v", c)
	}
}

func expects(t *testing.T, of string, texts ...string) (list []scenario.Threshold) {
	t.Helper()
	for _, text := range texts {
		x, err := scenario.ParseThreshold(text, of)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// X-Ray's figures of latency are of the means of intervals: a second with few slow operations counts as one with many.
func TestLatencyOfIntervalsAsXRay(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "run"}, {AtNanos: 10e9, Kind: interval.EventPhaseEnded, Phase: "run"}}
	var intervals []interval.Interval
	for s := range 10 {
		if s < 4 {
			intervals = append(intervals, second("g-0001", s, 1000, time.Millisecond))
		} else {
			intervals = append(intervals, second("g-0001", s, 10, 8*time.Millisecond))
		}
	}
	expect := func(statistic string, value float64) scenario.Threshold {
		return scenario.Threshold{Statistic: statistic, Operator: "<", Value: value, Text: statistic}
	}
	s := evaluated(t, record(t, events, intervals, nil), scenario.Result{Name: "lat", Source: scenario.FromGroup, Group: "g", Type: "latency",
		Aggregate: "mean", ReportMetrics: []string{"Median", "Mean"}, Expect: []scenario.Threshold{expect("median", 2e6), expect("interval_median", 2e6)}},
		scenario.Result{Name: "iops", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum", ReportMetrics: []string{"Median"},
			Expect: []scenario.Threshold{expect("interval_median", 11)}})
	r := s.Results[0]
	if st := r.Stats[0]; math.Abs(float64(st.Median)-1e6) > 1e4 || st.Intervals == nil || st.Intervals.Count != 10 || !near(st.Intervals.Median, 8e6) || !near(st.Intervals.Mean, 5.2e6) {
		t.Errorf("got %+v, %+v", r.Stats[0], r.Stats[0].Intervals)
	}
	if m := r.Metrics; len(m) != 2 || m[0].Value != r.Stats[0].Median || m[0].XRay == nil || !near(*m[0].XRay, 8e6) || !near(*m[1].XRay, 5.2e6) {
		t.Errorf("metrics: %+v", m)
	}
	if !r.Checks[0].Passed || r.Checks[1].Passed || r.Checks[1].Reason != "" {
		t.Errorf("checks: %+v", r.Checks)
	}
	if r := s.Results[1]; r.Stats[0].Intervals != nil || r.Metrics[0].XRay != nil || !r.Checks[0].Passed {
		t.Errorf("iops: %+v", r)
	}
}
