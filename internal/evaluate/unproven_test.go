package evaluate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestInvalidNumbersDecideNothing: a missed threshold is as unproven as a met one, unless the fault flattered the number.
func TestInvalidNumbersDecideNothing(t *testing.T) {
	native := interval.Engine{Name: "native", Loop: interval.LoopClosed, Backends: []string{"io_uring"}}
	null := native
	null.Backends = []string{"null"}
	events := []interval.Event{
		{Kind: interval.EventPhaseStarted, Phase: "run"},
		{Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{Kind: interval.EventWorkloadStart, Phase: "run", Workload: "Other", Group: "h", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "Other", Group: "h", Instance: 1},
		{AtNanos: 30e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	for name, c := range map[string]struct {
		engine  interval.Engine
		lost    string // the workload of which intervals are lost
		expect  string
		verdict result.Verdict
		reason  string
	}{
		"valid, met":             {native, "", "p99 < 5 ms", result.Pass, ""},
		"valid, missed":          {native, "", "p99 < 1 ms", result.Failed, ""},
		"invalid, met":           {native, "OLTP", "p99 < 5 ms", result.Undecided, "measured 2 ms, which meets the threshold, but the numbers are invalid: 12 of"},
		"invalid, missed":        {native, "OLTP", "p99 < 1 ms", result.Undecided, "measured 2 ms, which misses the threshold, but the numbers are invalid: 12 of"},
		"another load is, met":   {native, "Other", "p99 < 5 ms", result.Undecided, ""}, // the run as a whole is not proven
		"another load, missed":   {native, "Other", "p99 < 1 ms", result.Failed, ""},
		"flattered, met":         {null, "", "p99 < 5 ms", result.Undecided, "but the numbers are invalid: OLTP ran with the null engine"},
		"even flattered, missed": {null, "", "p99 < 1 ms", result.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var intervals []interval.Interval
			for s := range 30 {
				for _, w := range [][3]string{{"OLTP", "g", "g-0001"}, {"Other", "h", "h-0001"}} {
					if w[0] == c.lost && s >= 10 && s < 22 {
						continue
					}
					iv := second(w[2], s, 100+uint64(s%3)+uint64(len(w[0])), 2*time.Millisecond)
					iv.Workload, iv.Group, iv.Final = w[0], w[1], s == 29
					intervals = append(intervals, iv)
				}
			}
			b := recordDriven(t, map[string]interval.Engine{"OLTP": c.engine, "Other": native}, nil, append([]interval.Event{
				{Kind: interval.EventEngine, Workload: "OLTP", Group: "g", Instance: 1, Subject: "g-0001", Engine: &c.engine}}, events...), intervals, nil)
			s := evaluated(t, b, scenario.Result{Name: "r", Source: scenario.FromWorkload, Workload: "OLTP", Type: "latency", Aggregate: "mean",
				Expect: expects(t, "latency", c.expect)})
			check := s.Results[0].Checks[0]
			if s.Verdict != c.verdict || !strings.Contains(check.Reason, c.reason) || (check.Reason == "") != (c.reason == "") {
				t.Errorf("%s, want %s: %s\n%+v\n%+v", s.Verdict, c.verdict, s.Reason, check, s.Findings)
			}
			if c.reason != "" && !strings.Contains(s.Reason, c.reason) {
				t.Errorf("verdict: %s", s.Reason)
			}
		})
	}
}
