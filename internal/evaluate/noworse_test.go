package evaluate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// pin attaches a baseline of runs that measured these multiples of what a summary has.
func pin(t *testing.T, b *result.Bundle, s *result.Summary, factors ...float64) {
	t.Helper()
	m := b.Manifest()
	of := baseline.Baseline{}
	for _, f := range factors {
		r := baseline.Run{Run: "pinned", Factors: baseline.FactorsOf(&m, &plan.Plan{})}
		for _, e := range s.Results {
			one := baseline.Result{Name: e.Name}
			for _, st := range e.Stats {
				for _, v := range []*result.Number{&st.Mean, &st.Median, &st.P95, &st.P99, &st.P999} {
					*v *= result.Number(f)
				}
				one.Stats = append(one.Stats, st)
			}
			r.Results = append(r.Results, one)
		}
		of.Runs = append(of.Runs, r)
	}
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(b.Dir(), "attachments")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, baseline.Attachment), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// steady is a run of twenty seconds of one VM; change may spoil its intervals.
func steady(t *testing.T, change func(iv *interval.Interval)) *result.Bundle {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 0, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 20e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "OLTP", Group: "g", Instance: 1},
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 20 {
		iv := second("g-0001", s, 1000, time.Millisecond)
		if change != nil {
			change(&iv)
		}
		intervals = append(intervals, iv)
	}
	return record(t, events, intervals, nil)
}

func noWorseResults(t *testing.T, rate, latency string) []scenario.Result {
	t.Helper()
	list := []scenario.Result{{Name: "IOPS", Source: scenario.FromGroup, Type: "iops", Group: "g", Aggregate: "sum"}, {Name: "Latency", Source: scenario.FromGroup, Type: "latency", Group: "g", Aggregate: "mean"}}
	for i, text := range []string{rate, latency} {
		x, err := scenario.ParseThreshold(text, list[i].Type)
		if err != nil {
			t.Fatal(err)
		}
		list[i].Expect = []scenario.Threshold{x}
	}
	return list
}

func TestNoWorseThanBaseline(t *testing.T) {
	half := func(iv *interval.Interval) { iv.Due, iv.NotIssued = 2000, 1000 }
	for name, c := range map[string]struct {
		factors      []float64 // of the pinned runs: 2 is twice the number of this run
		rate, lat    string
		change       func(iv *interval.Interval)
		verdict      result.Verdict
		checks       int
		reason, text string // in the first check that is not passed; how the last compares
	}{
		"equal":                       {[]float64{1, 1.01, 0.99, 1, 1}, "no worse than baseline", "no worse than baseline", nil, result.Pass, 4, "", "against the baseline of 5 runs"},
		"twice the latency":           {[]float64{0.5, 0.51, 0.5}, "mean no worse than baseline", "p99 no worse than baseline", nil, result.Failed, 2, "was not met: measured 1 ms, +9", "+9"},
		"half of the rate":            {[]float64{2, 2.02, 2}, "no worse than baseline", "p50 no worse than baseline by 5%", nil, result.Failed, 2, "was not met: measured 1k IOPS, −50", "−50"},
		"noise beyond the tolerance":  {[]float64{0.8, 1.3, 1}, "no worse than baseline", "p99 no worse than baseline by 5 %", nil, result.Undecided, 2, "the tolerance lies within the interval", "95 %"},
		"two pinned runs":             {[]float64{1, 1}, "no worse than baseline", "p99 no worse than baseline", nil, result.Undecided, 2, "pin at least 3 repetitions", ""},
		"dropped operations":          {[]float64{1, 1.01, 0.99, 1, 1}, "no worse than baseline", "p99 no worse than baseline", half, result.Undecided, 2, "only a lower bound", ""},
		"worse by a tolerated amount": {[]float64{0.95, 0.951, 0.95, 0.949, 0.95}, "no worse than baseline", "p99 no worse than baseline by 20%", nil, result.Pass, 2, "", "+5.2"},
	} {
		b := steady(t, c.change)
		results := noWorseResults(t, c.rate, c.lat)
		without := evaluated(t, b, results...)
		if without.Verdict != result.Undecided || !strings.Contains(without.Reason, "no baseline was pinned when the run started") {
			t.Errorf("%s: without a baseline %s, %s", name, without.Verdict, without.Reason)
		}
		pin(t, b, &without, c.factors...)
		s := evaluated(t, b, results...)
		var checks []result.Check
		for _, r := range s.Results {
			checks = append(checks, r.Checks...)
		}
		if s.Verdict != c.verdict || len(checks) != c.checks {
			t.Errorf("%s: %s, %s, %+v", name, s.Verdict, s.Reason, checks)
			continue
		}
		if !strings.Contains(s.Reason, c.reason) || !strings.Contains(checks[len(checks)-1].Change, c.text) {
			t.Errorf("%s: %s, %+v", name, s.Reason, checks[len(checks)-1])
		}
	}
}

// TestLowerBoundIsNoPass: a run whose p99 is only a lower bound is never better than the baseline, however low the bound is.
func TestLowerBoundIsNoPass(t *testing.T) {
	sound := steady(t, nil)
	of := evaluated(t, sound, noWorseResults(t, "no worse than baseline", "no worse than baseline")...)
	b := steady(t, func(iv *interval.Interval) { iv.Due, iv.NotIssued = 2000, 1000 })
	pin(t, b, &of, 1, 1.01, 0.99, 1, 1)
	s := evaluated(t, b, noWorseResults(t, "no worse than baseline", "p99 no worse than baseline by 90%")...)
	if c := s.Results[1].Checks[0]; c.Passed || c.Reason == "" || !c.AtLeast {
		t.Errorf("%+v", c)
	}
}
