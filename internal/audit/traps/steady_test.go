package traps

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// settling is a result that leaves out the warm-up of the load.
func settling(kind string, expect ...scenario.Threshold) scenario.Result {
	return scenario.Result{Name: kind, Source: scenario.FromWorkload, Workload: "load", Type: kind, Aggregate: "sum", WarmUp: "auto", Expect: expect}
}

// finds returns the finding with a code; nil without one.
func finds(s *result.Summary, code string) *finding.Finding {
	if i := slices.IndexFunc(s.Findings, func(f finding.Finding) bool { return f.Code == code }); i >= 0 {
		return &s.Findings[i]
	}
	return nil
}

// TestWarmUpIsLeftOut: a load is four times as slow for its first 15 s. With warmup: auto, no figure counts these.
func TestWarmUpIsLeftOut(t *testing.T) {
	s := newScene(t)
	s.runs("load", reading, 80, slower(func(at int64) float64 {
		if at < 15*second {
			return 4
		}
		return 1
	}))
	from := s.at - 80*second
	limit := []scenario.Threshold{{Statistic: "p99", Operator: "<", Value: 1.5e6, Text: "p99 < 1.5 ms"}}
	steady := []scenario.Threshold{{Statistic: "cv", Operator: "<", Value: 0.05, Text: "cv < 5 %"}}
	with := settling("latency", limit...)
	with.WarmUp = ""
	summary := s.evaluate(settling("latency", limit...), settling("iops", steady...), with)
	for i, passed := range []bool{true, true, false} {
		r := summary.Results[i]
		if check := r.Checks[0]; check.Passed != passed || check.Reason != "" {
			t.Errorf("result %d: %+v", i, check)
		}
		if first := from + 15*second; passed && (r.FromNanos != first || len(r.WarmUps) != 1 || r.WarmUps[0].ToNanos != first || !r.WarmUps[0].Steady) {
			t.Errorf("result %d is from %d, %+v, want %d", i, r.FromNanos, r.WarmUps, first)
		}
		for _, p := range r.Series[0].Points {
			if passed && p.Seconds*1e9 < float64(from+15*second) && !math.IsNaN(p.Value) {
				t.Errorf("result %d has a point at %v s", i, p.Seconds)
				break
			}
		}
	}
	if f := finds(&summary, "warm-up-left-out"); f == nil || !strings.HasPrefix(f.Claim, "load: its first 15 s are left out of latency, iops as warm-up: with them, ") {
		t.Errorf("%+v", f)
	}
	for _, code := range []string{"not-steady", "warm-up-included", "not-settled"} {
		if f := finds(&summary, code); f != nil {
			t.Errorf("%s: %s", code, f.Claim)
		}
	}
}

// TestNeverSteady: a load that does not become steady decides no threshold of a result with warmup: auto.
func TestNeverSteady(t *testing.T) {
	for name, c := range map[string]struct {
		seconds int
		shape   func(at int64) float64
		why     string
	}{
		"square wave": {80, func(at int64) float64 { return 1 + float64(at/10e9%2) }, "load did not become steady in its first 1 m 20 s: "},
		"drift":       {80, func(at int64) float64 { return 1 + float64(at)/80e9 }, "load did not become steady in its first 1 m 20 s: its IOPS fell by "},
		"too short":   {15, func(int64) float64 { return 1 }, "load did not become steady in its first 15 s: too short to say"},
	} {
		s := newScene(t)
		s.runs("load", reading, c.seconds, slower(c.shape))
		summary := s.evaluate(settling("latency",
			scenario.Threshold{Statistic: "p99", Operator: "<", Value: 50e6, Text: "p99 < 50 ms"},
			scenario.Threshold{Statistic: "p99", Operator: "<", Value: 1e3, Text: "p99 < 1 us"}))
		for _, check := range summary.Results[0].Checks {
			if check.Passed || !strings.HasPrefix(check.Reason, c.why) || summary.Verdict != result.Undecided {
				t.Errorf("%s: %+v, %s", name, check, summary.Verdict)
			}
		}
		if f := finds(&summary, "not-settled"); f == nil || f.Severity != finding.Warning || !strings.HasPrefix(f.Claim, c.why) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
