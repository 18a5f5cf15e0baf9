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

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

func numbers(points result.Points) []string {
	var list []string
	for _, p := range points {
		list = append(list, fmt.Sprintf("%g:%g", p.Seconds, p.Value))
	}
	return list
}

// masked is a run of 20 s in which workload A runs from 2 to 5 and from 8 to 10, and workload OLTP all the time.
func masked(t *testing.T) *result.Bundle {
	at := func(s int64, kind interval.EventKind, workload string, instance int) interval.Event {
		return interval.Event{AtNanos: s * 1e9, Kind: kind, Phase: "run", Workload: workload, Group: "g", Instance: instance}
	}
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		at(0, interval.EventWorkloadStart, "OLTP", 1),
		at(2, interval.EventWorkloadStart, "A", 1), at(5, interval.EventWorkloadEnd, "A", 1),
		at(8, interval.EventWorkloadStart, "A", 2), at(10, interval.EventWorkloadEnd, "A", 2),
		at(20, interval.EventWorkloadEnd, "OLTP", 1),
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 20 {
		intervals = append(intervals, second("g-0001", s, 100, time.Millisecond))
		if s >= 2 && s < 5 || s >= 8 && s < 10 {
			iv := second("g-0001", s, 10, 5*time.Millisecond)
			iv.Workload, iv.Instance = "A", 1+s/8
			if s == 4 {
				iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": 2}
			}
			intervals = append(intervals, iv)
		}
	}
	return record(t, events, intervals, nil)
}

func TestMaskCutsTheWindow(t *testing.T) {
	s := evaluated(t, masked(t),
		scenario.Result{Name: "masked", Source: scenario.FromGroup, Group: "g", Mask: "A", Type: "iops", Aggregate: "sum"},
		scenario.Result{Name: "latency", Source: scenario.FromGroup, Group: "g", Mask: "A", Type: "latency", Aggregate: "mean"},
		scenario.Result{Name: "never", Source: scenario.FromGroup, Group: "g", Mask: "none", Type: "iops"},
		scenario.Result{Name: "own", Source: scenario.FromWorkload, Workload: "A", Type: "iops", Aggregate: "sum"})
	want := []string{"2.5:110", "3.5:110", "4.5:110", "5.5:NaN", "6.5:NaN", "7.5:NaN", "8.5:110", "9.5:110"}
	if got := numbers(s.Results[0].Series[0].Points); !slices.Equal(got, want) {
		t.Errorf("all traffic of the group while A runs: %v", got)
	}
	// 5 s of 100 operations of 1 ms and 10 of 5 ms.
	if st := s.Results[1].Stats[0]; st.Count != 550 || !near(st.Mean, (500*1e6+50*5e6)/550) {
		t.Errorf("latency: %+v", st)
	}
	if m := s.Results[2].Missing; !strings.Contains(m, `"none"`) {
		t.Errorf("missing: %q", m)
	}
	own := numbers(s.Results[3].Series[0].Points)
	if len(own) != 20 || own[2] != "2.5:10" || own[5] != "5.5:NaN" {
		t.Errorf("what A recorded, over the run phase: %v", own)
	}
}

func TestErrorsAndActivity(t *testing.T) {
	s := evaluated(t, masked(t),
		scenario.Result{Name: "errors", Source: scenario.FromWorkload, Workload: "A", Type: "errors", Aggregate: "sum", ReportMetrics: []string{"AnyFail", "NoScore"}},
		scenario.Result{Name: "active", Source: scenario.FromWorkload, Workload: "A", Type: "active", Aggregate: "sum"},
		scenario.Result{Name: "calm", Source: scenario.FromWorkload, Workload: "OLTP", Type: "errors", ReportMetrics: []string{"AnyFail"}})
	errors := numbers(s.Results[0].Series[0].Points)
	if errors[1] != "1.5:NaN" || errors[3] != "3.5:0" || errors[4] != "4.5:2" || errors[9] != "9.5:2" || errors[19] != "19.5:NaN" {
		t.Errorf("errors: %v", errors)
	}
	m := s.Results[0].Metrics
	if len(m) != 1 || m[0].Pass == nil || *m[0].Pass || m[0].Value != 2 || s.Verdict != result.Failed {
		t.Errorf("AnyFail: %+v, verdict %s", m, s.Verdict)
	}
	if active := numbers(s.Results[1].Series[0].Points); active[2] != "2.5:1" || active[6] != "6.5:NaN" {
		t.Errorf("activity: %v", active)
	}
	if m := s.Results[2].Metrics; len(m) != 1 || !*m[0].Pass {
		t.Errorf("AnyFail without errors: %+v", m)
	}
}

func TestReportMetricsAndExpectedValues(t *testing.T) {
	expected := 200.0
	s := evaluated(t, powerLoss(t),
		scenario.Result{Name: "each", Source: scenario.FromGroup, Group: "g", Type: "iops", Expected: &expected,
			Bands:         []scenario.Band{{Name: "95%", Lower: 190, Upper: 210}},
			ReportMetrics: []string{"Variability", "Min", "Mean", "Median", "Max"}},
		scenario.Result{Name: "latency", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean", Expected: &expected})
	var got []string
	for _, m := range s.Results[0].Metrics {
		got = append(got, fmt.Sprintf("%s %s %g %s", m.Series, m.Name, float64(m.Value), m.Unit))
	}
	want := []string{"g-0001 Variability 0 %", "g-0002 Variability 0 %", "g-0001 Min 100 IOPS", "g-0002 Min 200 IOPS", "g-0001 Mean 100 IOPS",
		"g-0002 Mean 200 IOPS", "g-0001 Median 100 IOPS", "g-0002 Median 200 IOPS", "g-0001 Max 100 IOPS", "g-0002 Max 200 IOPS"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if r := s.Results[0]; *r.Expected != 200 || r.Bands[0].Upper != 210 {
		t.Errorf("expected %v, bands %v", *r.Expected, r.Bands)
	}
	if r := s.Results[1]; *r.Expected != 200e3 || r.Unit != "ns" {
		t.Errorf("X-Ray states latency in microseconds: %v %s", *r.Expected, r.Unit)
	}
}

func TestClusterMetricByHand(t *testing.T) {
	var samples []result.Sample
	for s := range int64(10) {
		of := []target.NodeSample{{NodeID: "n1", Metric: "NetReceived.Avg.KilobytesPerSecond", Value: 10, Simulated: true}}
		if s < 4 || s >= 8 { // n2 has no power from 4 to 8
			of = append(of, target.NodeSample{NodeID: "n2", Metric: "NetReceived.Avg.KilobytesPerSecond", Value: 20})
		}
		samples = append(samples, reading(s*1e9+1e8, of...)...)
	}
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "run"}, {AtNanos: 10e9, Kind: interval.EventPhaseEnded, Phase: "run"}}
	b := record(t, events, nil, samples)
	s := evaluated(t, b, scenario.Result{Name: "net", Source: scenario.FromMetric, Metric: "NetReceived.Avg.KilobytesPerSecond", Aggregate: "sum"},
		scenario.Result{Name: "each", Source: scenario.FromMetric, Metric: "NetReceived.Avg.KilobytesPerSecond"},
		scenario.Result{Name: "other", Source: scenario.FromMetric, Metric: "MemUsage.Avg.Percent"})
	all := s.Results[0]
	if all.Unit != "B/s" || !all.Simulated || all.Stats[0].Max != 30*1024 || all.Stats[0].Min != 10*1024 {
		t.Errorf("sum: %s %+v", all.Unit, all.Stats)
	}
	n2 := numbers(s.Results[1].Series[1].Points)
	// A reading covers the second before it, and the last one is valid for two and a half periods.
	if n2[2] != "2.5:20480" || n2[4] != "4.5:20480" || n2[5] != "5.5:NaN" || n2[6] != "6.5:NaN" || n2[7] != "7.5:20480" {
		t.Errorf("n2: %v", n2)
	}
	if s.Results[2].Missing == "" || len(s.Results[2].Series) != 0 {
		t.Errorf("a metric without samples: %+v", s.Results[2])
	}
}

func TestQueryResult(t *testing.T) {
	b := powerLoss(t)
	store, err := metric.Rebuild(context.Background(), b, filepath.Join(t.TempDir(), metric.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rate := `irate(bragg_operations_total{__curie_filter_scenario__, __curie_filter_vm_group__}[2s])`
	s, err := evaluate.Run(context.Background(), evaluate.Input{
		Bundle: b, Metrics: store, Ended: result.EndedCompleted, Scenario: &scenario.Scenario{Results: []scenario.Result{
			{Name: "sum in PromQL", Source: scenario.FromQuery, Group: "g", Type: "generic", Query: "sum(" + rate + ")"},
			{Name: "sum by us", Source: scenario.FromQuery, Group: "g", Type: "generic", Query: rate, Aggregate: "sum", YLabel: "operations/s"},
			{Name: "each", Source: scenario.FromQuery, Group: "g", Type: "generic", Query: rate, YLabel: "Rate (IOPS)"},
			{Name: "broken", Source: scenario.FromQuery, Group: "g", Type: "generic", Query: "sum("},
			{Name: "nothing", Source: scenario.FromQuery, Group: "g", Type: "generic", Query: "no_such_metric"},
			{Name: "intervals", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if st := s.Results[i].Stats[0]; st.Max != 300 || st.Min != 100 {
			t.Errorf("%s: %+v", s.Results[i].Name, st)
		}
	}
	for i, want := range []string{"", "operations/s", ""} { // a single word is a unit, a title is not
		if unit := s.Results[i].Unit; unit != want {
			t.Errorf("%s: unit %q, want %q", s.Results[i].Name, unit, want)
		}
	}
	// A point of a query covers the time before it, a point of intervals is in the middle of its second.
	query, own := s.Results[0].Series[0].Points, s.Results[5].Series[0].Points
	for i, p := range own {
		if q := query[i+1]; q.Value != p.Value || q.Seconds != p.Seconds+0.5 {
			t.Errorf("query says %v, intervals say %v", q, p)
		}
	}
	each := s.Results[2]
	if len(each.Series) != 2 || !strings.Contains(each.Series[1].Name, "g-0002") || each.Series[0].Labels["vm"] != "g-0001" {
		t.Errorf("each: %+v", each.Series)
	}
	if dead := each.Series[1].Points[15]; !math.IsNaN(dead.Value) {
		t.Errorf("a dead VM is a gap in a query too: %v", dead)
	}
	if s.Results[3].Missing == "" || s.Results[4].Missing == "" {
		t.Errorf("missing: %q, %q", s.Results[3].Missing, s.Results[4].Missing)
	}
	without := evaluated(t, b, scenario.Result{Name: "q", Source: scenario.FromQuery, Type: "generic", Query: "up"})
	if without.Results[0].Missing == "" {
		t.Error("without a store a query has no answer")
	}
}

func TestVerdict(t *testing.T) {
	pass := scenario.Threshold{Statistic: "mean", Operator: ">=", Value: 100, Text: "mean >= 100"}
	fail := scenario.Threshold{Statistic: "min", Operator: ">", Value: 100, Text: "min > 100"}
	undecidable := scenario.Threshold{Statistic: "mean", Operator: ">", Value: 1, Text: "mean > 1", Window: "after never"}
	complete := scenario.Threshold{Statistic: "time_to_complete", Operator: "<", Value: 60, Text: "time_to_complete < 60 s"}
	for name, c := range map[string]struct {
		ended  string
		expect []scenario.Threshold
		bound  bool
		want   result.Verdict
	}{
		"nothing expected":        {result.EndedCompleted, nil, false, result.Completed},
		"met":                     {result.EndedCompleted, []scenario.Threshold{pass}, false, result.Pass},
		"both met":                {result.EndedCompleted, []scenario.Threshold{pass, pass}, false, result.Pass},
		"not met":                 {result.EndedCompleted, []scenario.Threshold{pass, fail}, false, result.Failed},
		"undecided":               {result.EndedCompleted, []scenario.Threshold{pass, undecidable}, false, result.Undecided},
		"not met and undecided":   {result.EndedCompleted, []scenario.Threshold{fail, undecidable}, false, result.Failed},
		"not met but incomplete":  {result.EndedFailed, []scenario.Threshold{fail}, false, result.Undecided},
		"interrupted":             {result.EndedInterrupted, []scenario.Threshold{pass}, false, result.Undecided},
		"not bound by size":       {result.EndedCompleted, []scenario.Threshold{complete}, false, result.Undecided},
		"complete within a while": {result.EndedCompleted, []scenario.Threshold{complete}, true, result.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := evaluate.Run(context.Background(), evaluate.Input{
				Bundle: calm(t, c.bound), Ended: c.ended,
				Scenario: &scenario.Scenario{Results: []scenario.Result{
					{Name: "r", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "min", Expect: c.expect},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if s.Verdict != c.want || s.Reason == "" || strings.Contains(s.Reason, "all 2") {
				t.Errorf("%s, want %s: %s (checks %+v)", s.Verdict, c.want, s.Reason, s.Results[0].Checks)
			}
		})
	}
}

// Of several series the value that is shown is one that fails, where one does.
func TestShownValueIsTheWorst(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 20 {
		for vm, operations := range map[string]uint64{"g-0001": 100, "g-0002": 150, "g-0003": 130} {
			intervals = append(intervals, second(vm, s, operations, time.Millisecond))
		}
	}
	b := record(t, events, intervals, nil)
	for _, c := range []struct {
		operator     string
		bound, value float64
		passed       bool
	}{
		{"<", 140, 150, false}, {">", 120, 100, false}, {"==", 150, 100, false}, {"==", 100, 150, false},
		{"!=", 100, 100, false}, {"!=", 150, 150, false}, {"!=", 160, 150, true}, {"<=", 150, 150, true}, {">=", 100, 100, true},
	} {
		expect := scenario.Threshold{Statistic: "median", Operator: c.operator, Value: c.bound, Text: "median"}
		r := scenario.Result{Name: "r", Source: scenario.FromGroup, Group: "g", Type: "iops", Expect: []scenario.Threshold{expect}}
		check := evaluated(t, b, r).Results[0].Checks[0]
		if !near(check.Value, c.value) || check.Passed != c.passed {
			t.Errorf("median %s %g: %+v, want %g, %t", c.operator, c.bound, check, c.value, c.passed)
		}
	}
}

// A load that the run itself cut off did not complete, and a window has no time to complete.
func TestTimeToComplete(t *testing.T) {
	cut := interval.Event{AtNanos: 29e9, Kind: interval.EventAnnotation, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1, Subject: "g-0001", CutByRun: true}
	for name, c := range map[string]struct {
		events []interval.Event
		window string
		want   result.Verdict
	}{
		"complete":    {nil, "", result.Pass},
		"cut":         {[]interval.Event{cut}, "", result.Undecided},
		"of a window": {nil, "run", result.Undecided},
	} {
		expect := scenario.Threshold{Statistic: "time_to_complete", Operator: "<", Value: 60, Text: "time_to_complete < 60 s", Window: c.window}
		s, err := evaluate.Run(context.Background(), evaluate.Input{
			Bundle: calm(t, true, c.events...), Ended: result.EndedCompleted,
			Scenario: &scenario.Scenario{Results: []scenario.Result{
				{Name: "r", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "min", Expect: []scenario.Threshold{expect}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %s (checks %+v)", name, s.Verdict, c.want, s.Reason, s.Results[0].Checks)
		}
	}
}

// calm is a run of 30 s about which an audit has no doubt. Its load may be bound by its size, as its plan says.
func calm(t *testing.T, bound bool, more ...interval.Event) *result.Bundle {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 0, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 30 {
		iv := second("g-0001", s, 100, time.Millisecond+time.Duration(s))
		iv.Final = s == 29
		intervals = append(intervals, iv)
	}
	var p *plan.Plan
	if bound {
		p = &plan.Plan{Steps: []plan.Step{{Workload: "OLTP", Starts: &plan.LoadStart{}}}}
	}
	return recordPlanned(t, p, append(events, more...), intervals, nil)
}

func TestRunPhaseNotReached(t *testing.T) {
	b := record(t, []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "setup"}, {AtNanos: 5e9, Kind: interval.EventPhaseEnded, Phase: "setup", Error: "no space"}}, nil, nil)
	s, err := evaluate.Run(context.Background(), evaluate.Input{
		Bundle: b, Ended: result.EndedFailed, Reason: "Setup failed: no space.",
		Scenario: &scenario.Scenario{Results: []scenario.Result{
			{Name: "r", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean"},
			{Name: "m", Source: scenario.FromMetric, Metric: "CpuUsage.Avg.Percent"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Verdict != result.Undecided || s.Reason != "Setup failed: no space." || len(s.Results) != 2 || s.Results[0].Missing == "" || s.Results[1].Missing == "" {
		t.Errorf("%+v", s)
	}
}

func TestEvaluateStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := evaluate.Run(ctx, evaluate.Input{
		Bundle: powerLoss(t), Scenario: &scenario.Scenario{Results: []scenario.Result{{Name: "r", Source: scenario.FromGroup, Group: "g", Type: "iops"}}},
	})
	if err == nil {
		t.Error("a cancelled evaluation went on")
	}
}

// TestWindowsOfRates: a rate looks back, and no window has what was before it: neither the warm-up nor the time before a step.
func TestWindowsOfRates(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 10_300e6, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 20_300e6, Kind: interval.EventStepStarted, Phase: "run", StepID: 1, Step: "test.Do", Label: "do"},
		{AtNanos: 20_310e6, Kind: interval.EventStepEnded, Phase: "run", StepID: 1, Step: "test.Do", Label: "do"},
		{AtNanos: 30_300e6, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 30 {
		operations := uint64(100)
		if s < 10 {
			operations = 1000
		} else if s > 20 {
			operations = 300
		}
		intervals = append(intervals, second("g-0001", s, operations, time.Millisecond))
	}
	b := record(t, events, intervals, nil)
	store, err := metric.Rebuild(context.Background(), b, filepath.Join(t.TempDir(), metric.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Metrics: store, Ended: result.EndedCompleted,
		Scenario: &scenario.Scenario{Results: []scenario.Result{{Name: "rate", Source: scenario.FromQuery, Type: "generic",
			Query: `sum(irate(bragg_operations_total{__curie_filter_scenario__}[30s]))`}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range s.Results[0].Stats {
		if want := map[string]result.Number{"before do": 100, "after do": 300}[row.Window]; want != 0 && (row.Min != want || row.Max != want) {
			t.Errorf("%q: %v to %v, want %v; %v", row.Window, row.Min, row.Max, want, s.Results[0].Series[0].Points)
		}
	}
}
