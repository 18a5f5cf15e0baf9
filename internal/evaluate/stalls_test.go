package evaluate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestStallsDecide: a closed loop that completes nothing for 1.9 s has good percentiles, and a stall.
func TestStallsDecide(t *testing.T) {
	steady := interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 999e6, ToNanos: 1e9}}
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 15e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 15.1e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	stalled := func(iv *interval.Interval) {
		iv.Gaps = steady
		switch iv.Sequence {
		case 20:
			iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 100e6, ToNanos: 1e9}}
		case 21:
			iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e9}}
		}
	}
	for name, c := range map[string]struct {
		change     func(iv *interval.Interval)
		text, want string
		window     string
		value      float64
	}{
		"stall":         {stalled, "longest_stall < 1", "failed", "", 1.901},
		"allowed":       {stalled, "longest_stall < 2", "passed", "", 1.901},
		"before":        {stalled, "longest_stall < 1", "passed", "before cut", 0.010},
		"after":         {stalled, "longest_stall < 1", "failed", "after cut", 1.901},
		"at zero":       {stalled, "seconds_at_zero == 0", "failed", "", 1},
		"none at zero":  {stalled, "seconds_at_zero == 0", "passed", "before cut", 0},
		"not recorded":  {stalled, "longest_stall < 0.005", "undecided", "before cut", 0.010},
		"smeared":       {func(*interval.Interval) {}, "longest_stall < 1", "undecided", "", 0},
		"smeared, zero": {func(*interval.Interval) {}, "seconds_at_zero == 0", "undecided", "", 0},
	} {
		for _, kind := range []string{"latency", "iops", "bandwidth"} {
			var intervals []interval.Interval
			for s := range 30 {
				iv := second("g-0001", s, 100, 10*time.Millisecond)
				iv.Final = s == 29
				c.change(&iv)
				intervals = append(intervals, iv)
			}
			x := scenario.Threshold{Text: c.text, Window: c.window}
			if _, err := fmt.Sscan(c.text, &x.Statistic, &x.Operator, &x.Value); err != nil {
				t.Fatal(err)
			}
			r := scenario.Result{Name: "r", Source: scenario.FromWorkload, Workload: "OLTP", Type: kind, Aggregate: "mean", Expect: []scenario.Threshold{x}}
			s := evaluated(t, record(t, events, intervals, nil), r)
			check := s.Results[0].Checks[0]
			got := "failed"
			if check.Passed {
				got = "passed"
			} else if check.Reason != "" {
				got = "undecided"
			}
			if got != c.want || check.Unit != "s" || c.value > 0 && !near(check.Value, c.value) {
				t.Errorf("%s, %s: %s, want %s: %+v", name, kind, got, c.want, check)
			}
			if strings.HasPrefix(name, "smeared") && s.Results[0].Stats[0].Stall != nil {
				t.Errorf("%s: %+v, want unknown", name, s.Results[0].Stats[0].Stall)
			}
		}
	}
	if _, err := scenario.ParseThreshold("longest_stall < 500 ms", "latency"); err != nil {
		t.Error(err)
	}
}

// TestNoStallsWithoutLoad: in the window in which the load did not run, nothing is known of stalls, and no threshold is met.
func TestNoStallsWithoutLoad(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 15e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 15.1e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 15 {
		iv := second("g-0001", s, 100, 10*time.Millisecond)
		iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 999e6, ToNanos: 1e9}}
		iv.Final = s == 14
		intervals = append(intervals, iv)
	}
	for _, kind := range []string{"latency", "iops", "bandwidth"} {
		x := scenario.Threshold{Text: "longest_stall < 1", Statistic: "longest_stall", Operator: "<", Value: 1, Window: "after cut"}
		r := scenario.Result{Name: "r", Source: scenario.FromWorkload, Workload: "OLTP", Type: kind, Aggregate: "mean", Expect: []scenario.Threshold{x}}
		got := evaluated(t, record(t, events, intervals, nil), r).Results[0]
		if c := got.Checks[0]; c.Passed || c.Reason != `no data in window "after cut"` {
			t.Errorf("%s: %+v", kind, c)
		}
		for _, row := range got.Stats {
			if ran := row.Window != "after cut"; ran != (row.Stall != nil) {
				t.Errorf("%s, window %q: stall %+v", kind, row.Window, row.Stall)
			}
		}
	}
}
