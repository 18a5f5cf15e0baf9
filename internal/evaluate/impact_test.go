package evaluate_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// cutRun is a run of two minutes whose node n1 loses power at 60 s and has it again at 80 s. The VM there is away for 30 s; that on
// n2 does 40 % less for 10 s. Every second has 1,000 operations, on n2 alternately wobble more and less.
func cutRun(t *testing.T, wobble int, end int) *result.Bundle {
	events := []interval.Event{
		{Kind: interval.EventPlaced, Subject: "g-0001", Node: "n1"}, {Kind: interval.EventPlaced, Subject: "g-0002", Node: "n2"},
		{Kind: interval.EventPhaseStarted, Phase: "run"},
		{Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 60e9, Kind: interval.EventStepStarted, Phase: "run", Label: "cut", StepID: 1},
		{AtNanos: 60e9, Kind: interval.EventOperationStarted, Phase: "run", Operation: interval.OperationNodeOff, OperationID: 1, Subject: "n1"},
		{AtNanos: 60.5e9, Kind: interval.EventOperationEnded, Phase: "run", Operation: interval.OperationNodeOff, OperationID: 1, Subject: "n1"},
		{AtNanos: 60.5e9, Kind: interval.EventStepEnded, Phase: "run", Label: "cut", StepID: 1},
		{AtNanos: 80e9, Kind: interval.EventStepStarted, Phase: "run", Label: "return", StepID: 2},
		{AtNanos: 80e9, Kind: interval.EventOperationStarted, Phase: "run", Operation: interval.OperationNodeOn, OperationID: 2, Subject: "n1"},
		{AtNanos: 81e9, Kind: interval.EventOperationEnded, Phase: "run", Operation: interval.OperationNodeOn, OperationID: 2, Subject: "n1"},
		{AtNanos: 81e9, Kind: interval.EventStepEnded, Phase: "run", Label: "return", StepID: 2},
		{AtNanos: int64(end) * 1e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: int64(end) * 1e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range end {
		if s < 60 || s >= 90 {
			iv := second("g-0001", s, 1000, time.Millisecond)
			if s >= 90 {
				iv.Sequence -= 30 // a VM without power has no intervals: none is lost
			}
			intervals = append(intervals, iv)
		}
		n := 1000 + wobble*(2*(s/3%2)-1)
		if s >= 60 && s < 70 {
			n = 600
		}
		iv := second("g-0002", s, uint64(n), time.Millisecond)
		iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 999e6, ToNanos: 1e9}}
		intervals = append(intervals, iv)
	}
	return record(t, events, intervals, nil)
}

func TestThresholdsOfEvents(t *testing.T) {
	const met, missed, undecided = "met", "missed", "undecided"
	for _, c := range []struct {
		text, event, vms string
		wobble, end      int
		want             string
		value            float64
	}{
		{"dip < 50 %", "cut", "", 2, 120, met, 40},
		{"dip < 30 %", "cut", "", 2, 120, missed, 40},
		{"dip < 30 %", "return", "", 2, 120, met, 0},
		{"dip < 1 %", "return", "", 200, 120, undecided, 0}, // a load that varies by 20 % hides it
		{"dip < 50 %", "", "", 2, 120, met, 40},
		{"dip < 50 %", "cut", "taken_away", 2, 120, missed, 100},
		{"recovery < 20 s", "cut", "", 2, 120, met, 10},
		{"recovery < 5 s", "cut", "", 2, 120, missed, 10},
		{"recovery < 5 s", "cut", "", 2, 72, missed, 10},     // the load ended 2 s after it: 10 s are sure
		{"recovery < 20 s", "cut", "", 2, 72, undecided, 10}, // and whether it stayed is not
		{"recovery_10 < 40 s", "cut", "taken_away", 2, 120, met, 30},
		{"first_io < 40 s", "cut", "taken_away", 2, 120, met, 30},
		{"first_io < 20 s", "cut", "taken_away", 2, 120, missed, 30},
		{"first_io < 30 s", "cut", "taken_away", 2, 75, undecided, 15},
		{"first_io < 10 s", "cut", "taken_away", 2, 75, missed, 15},
		{"stall < 20 s", "cut", "taken_away", 2, 120, missed, 30},
		{"stall < 1 s", "cut", "", 2, 120, met, 0},
		{"lost_operations < 5k", "cut", "", 2, 120, met, 4000},
		{"lost_operations < 3k", "cut", "", 2, 120, missed, 4000},
		{"lost_operations < 1", "return", "", 2, 120, undecided, 0},
		{"dip < 50 %", "other", "", 2, 120, undecided, 0},
	} {
		x, err := scenario.ParseThreshold(c.text, "iops")
		if err != nil {
			t.Fatal(err)
		}
		x.Event, x.VMs = c.event, c.vms
		r := scenario.Result{Name: "r", Source: scenario.FromWorkload, Workload: "OLTP", Type: "iops", Aggregate: "sum", Expect: []scenario.Threshold{x}}
		s := evaluated(t, cutRun(t, c.wobble, c.end), r)
		check := s.Results[0].Checks[0]
		got := missed
		switch {
		case check.Passed:
			got = met
		case check.Reason != "":
			got = undecided
		}
		if v := float64(check.Value); got != c.want || c.value > 0 && (v < 0.99*c.value || v > 1.01*c.value) {
			t.Errorf("%s of %q %s, wobble %d, %d s: %s with %v %s (%s), want %s with %g", c.text, c.event, c.vms, c.wobble, c.end, got,
				check.Value, check.Unit, check.Reason, c.want, c.value)
		}
	}
}
