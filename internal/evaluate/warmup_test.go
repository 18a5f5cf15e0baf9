package evaluate_test

import (
	"context"
	"testing"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
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
