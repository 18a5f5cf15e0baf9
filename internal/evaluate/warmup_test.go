package evaluate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestWaitInVain: after a wait until: steady that ended without a steady load, thresholds of that load are undecided, and no others.
func TestWaitInVain(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "run"}}
	var intervals []interval.Interval
	for i, w := range []string{"OLTP", "DSS"} {
		events = append(events, interval.Event{Kind: interval.EventWorkloadStart, Phase: "run", Workload: w, Group: "g", Instance: 1},
			interval.Event{AtNanos: 30e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: w, Group: "g", Instance: 1})
		for s := range 30 {
			intervals = append(intervals, piece(w, "g-0001", float64(s), float64(s+1), uint64(100+i*(1+s%3))))
		}
	}
	const why = "OLTP did not become steady within 20 s: too short to say"
	events = append(events, interval.Event{AtNanos: 20e9, Kind: interval.EventSteady, Phase: "run", Workload: "OLTP", Instance: 1,
		SpanNanos: 20e9, Message: why, Error: "too short to say"}, interval.Event{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"})
	limit := []scenario.Threshold{{Statistic: "mean", Operator: ">", Value: 10, Text: "mean > 10"}}
	sc := &scenario.Scenario{Results: []scenario.Result{
		{Name: "OLTP", Source: scenario.FromWorkload, Workload: "OLTP", Type: "iops", Aggregate: "sum", Expect: limit},
		{Name: "group", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum", Expect: limit},
		{Name: "DSS", Source: scenario.FromWorkload, Workload: "DSS", Type: "iops", Aggregate: "sum", Expect: limit},
	}}
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: record(t, events, intervals, nil), Scenario: sc, Ended: result.EndedCompleted})
	if err != nil {
		t.Fatal(err)
	}
	for i, reason := range []string{why, why, ""} {
		if c := s.Results[i].Checks[0]; c.Reason != reason || c.Passed != (reason == "") {
			t.Errorf("%s: %+v", s.Results[i].Name, c)
		}
	}
	if s.Verdict != result.Undecided {
		t.Errorf("%s: %s", s.Verdict, s.Reason)
	}
}

// TestRampsAreLeftOut: a load counts no operations in its ramp, so that this time is none of its results', nor of those of its group if the load is
// the only one there. Of two starts, each has a ramp.
func TestRampsAreLeftOut(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPhaseStarted, Phase: "run"}}
	var intervals []interval.Interval
	for start, from := range []float64{0, 30} {
		events = append(events, interval.Event{AtNanos: int64(from * 1e9), Kind: interval.EventWorkloadStart, Phase: "run", Workload: "W", Group: "g", Instance: start + 1})
		for s := range 20 {
			operations := uint64(0)
			if s >= 8 {
				operations = 500
			}
			iv := piece("W", "g-0001", from+float64(s), from+float64(s+1), operations)
			iv.Instance, iv.Sequence, iv.Final = start+1, int64(s), s == 19
			intervals = append(intervals, iv)
		}
		events = append(events, interval.Event{AtNanos: int64((from + 20) * 1e9), Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "W", Group: "g", Instance: start + 1})
	}
	events = append(events, interval.Event{AtNanos: 50e9, Kind: interval.EventPhaseEnded, Phase: "run"})
	sc := &scenario.Scenario{Results: []scenario.Result{
		{Name: "W", Source: scenario.FromWorkload, Workload: "W", Type: "iops", Aggregate: "sum"},
		{Name: "group", Source: scenario.FromGroup, Group: "g", Type: "iops", Aggregate: "sum"},
	}}
	mean := func(p *plan.Plan) (list []float64) {
		b := recordPlanned(t, p, events, intervals, nil)
		s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Scenario: sc, Ended: result.EndedCompleted})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Results {
			if p.Workloads[0].Load.Ramp > 0 && len(s.Results[i].WarmUps) != 2 && len(p.Workloads) == 1 {
				t.Errorf("%s leaves out %+v", s.Results[i].Name, s.Results[i].WarmUps)
			}
			list = append(list, float64(s.Results[i].Stats[0].Mean))
		}
		return list
	}
	ramped := plan.Workload{Name: "W", Group: "g", Load: &load.Plan{Ramp: 8 * time.Second}}
	for _, c := range []struct {
		workloads []plan.Workload
		want      []float64
	}{
		{[]plan.Workload{ramped}, []float64{500, 500}},
		{[]plan.Workload{ramped, {Name: "other", Group: "g"}}, []float64{500, 300}},
		{[]plan.Workload{{Name: "W", Group: "g", Load: &load.Plan{}}}, []float64{300, 300}},
	} {
		if got := mean(&plan.Plan{Workloads: c.workloads}); !slices.Equal(got, c.want) {
			t.Errorf("means %v, want %v", got, c.want)
		}
	}
}
