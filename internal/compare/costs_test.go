package compare_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// cut gives a run a power cut with this cost; back is in seconds, and negative where the load ended before that.
func cut(r *document.Run, dip, stall, back, lost float64) *document.Run {
	s := &result.ImpactScore{Count: 3, Dip: result.ImpactDip{Seen: dip > 0, Depth: result.Number(dip), Detectable: 0.04},
		Stall: result.ImpactStall{Nanos: int64(stall * 1e9), AtLeastNanos: int64(stall * 1e9)},
		Lost:  result.ImpactLost{Operations: result.Number(lost), UncertainOperations: 100}}
	nanos := int64(math.Round(math.Abs(back))) * 1e9
	s.Within5 = result.ImpactBack{Nanos: &nanos, AtLeastNanos: nanos}
	if back < 0 {
		s.Within5.Nanos, s.Within5.Unknown = nil, "not back for 5 s before the load ended"
	}
	s.Within10 = s.Within5
	s.Latency.During = &result.LatencyDigest{Count: 1e5, P99: result.Number(1e7)}
	r.Summary.Impacts = []result.Impact{{Event: "nodes.PowerOff 0", Kind: result.ImpactNodeOff, Subjects: []string{"node-1"}, FromNanos: 60e9,
		Loads: []result.ImpactLoad{{Workload: "OLTP", Group: "OLTP", LivedOn: s}}}}
	return r
}

// cuts are runs whose power cuts cost this much, with a spread of 10 % from run to run.
func (s *source) cuts(n int, dip, stall, back, lost float64) []*document.Run {
	var list []*document.Run
	for _, r := range s.runs(n, 1) {
		vary := func(v float64) float64 { return v * math.Exp(0.1*s.random.NormFloat64()) }
		list = append(list, cut(r, vary(dip), vary(stall), vary(back), vary(lost)))
	}
	return list
}

func shift(t *testing.T, c *compare.Comparison, name string) *compare.Shift {
	t.Helper()
	for i := range c.Costs {
		for j := range c.Costs[i].Figures {
			if c.Costs[i].Figures[j].Name == name {
				return &c.Costs[i].Figures[j]
			}
		}
	}
	t.Fatalf("no %s in %+v", name, c.Costs)
	return nil
}

// TestCostErrorRates: of all pairs of sets with the same cost, at most 5 % have any that is called different; a recovery that takes twice as
// long is called different in at least 95 %.
func TestCostErrorRates(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, pairs int) {
		const seed = 51
		s := newSource(seed, 0.02)
		alarms, found := 0, 0
		for range pairs {
			c := sets(t, s.cuts(4, 0.3, 2, 30, 5000), s.cuts(4, 0.3, 2, 30, 5000))
			if slices.ContainsFunc(c.Costs[0].Figures, func(f compare.Shift) bool { return f.Verdict == compare.Different }) {
				alarms++
			}
			if c = sets(t, s.cuts(5, 0.3, 2, 30, 5000), s.cuts(5, 0.3, 2, 60, 5000)); shift(t, c, "recovery").Verdict == compare.Different {
				found++
			}
		}
		t.Logf("%d of %d pairs without a difference called different, %d with one", alarms, pairs, found)
		if alarms > pairs*5/100 || found < pairs*95/100 {
			t.Errorf("seed %d", seed)
		}
	})
}

func TestCostsOfSets(t *testing.T) {
	s := newSource(52, 0.02)
	c := sets(t, s.cuts(5, 0.3, 2, 30, 5000), s.cuts(5, 0.6, 2, 60, 5000))
	dip := shift(t, c, "dip")
	if dip.Verdict != compare.Different || dip.Low > 0.3 || dip.High < 0.3 || dip.Low < 0.1 || math.Abs(float64(dip.Difference)-0.3) > 0.1 {
		t.Errorf("%+v", dip)
	}
	if stall := shift(t, c, "stall"); stall.Verdict != compare.NoneSeen || stall.Low > 0 || stall.High < 0 {
		t.Errorf("%+v", stall)
	}
	if !strings.Contains(c.Headline, "The cost of events differs in") || !strings.Contains(c.Headline, "Power cut of node-1, OLTP, dip by +") {
		t.Error(c.Headline)
	}
	if c = sets(t, s.cuts(1, 0.3, 2, 30, 5000), s.cuts(5, 0.6, 2, 60, 5000)); shift(t, c, "dip").Verdict != compare.TooFew {
		t.Errorf("%+v", shift(t, c, "dip"))
	}
}

// TestBoundsOfCosts: a bound is never taken for the number.
func TestBoundsOfCosts(t *testing.T) {
	s := newSource(53, 0.02)
	open := sets(t, s.cuts(4, 0.3, 2, 30, 5000), s.cuts(4, 0.3, 2, -120, 5000))
	recovery := shift(t, open, "recovery")
	if recovery.Verdict != compare.Different || !(recovery.Low > 60) || !math.IsInf(float64(recovery.High), 1) || !math.IsNaN(float64(recovery.Difference)) {
		t.Errorf("at least 120 s after 30 s: %+v", recovery)
	}
	both := shift(t, sets(t, s.cuts(4, 0.3, 2, -120, 5000), s.cuts(4, 0.3, 2, -120, 5000)), "recovery")
	if both.Verdict != "" || !strings.Contains(both.Reason, "only a bound in run A1") {
		t.Errorf("bounds on both sides: %+v", both)
	}
	unseen := sets(t, s.cuts(4, 0, 0, 0, 0), s.cuts(4, 0, 0, 0, 0))
	if dip := shift(t, unseen, "dip"); dip.Verdict != compare.NoneSeen || dip.Low > -0.04 || dip.High < 0.04 || dip.ValueText(0) != "none seen (up to 4 %)" {
		t.Errorf("an unseen dip is up to 4 %%: %+v %s", dip, dip.ValueText(0))
	}
	for text, want := range map[string]struct {
		of      *compare.Comparison
		outcome compare.Outcome
	}{
		"recovery > 10 s": {open, compare.Failed}, "recovery > 10 min": {open, compare.Undecided}, "recovery < -10 s": {open, compare.Passed},
		`recovery_10 of "Power cut of node-1" > 500 ms`: {open, compare.Failed}, `recovery of "nodes.PowerOff" in "OLTP" > 1 h`: {open, compare.Undecided},
		`dip of "NODES.poweroff" > 25%`: {open, compare.Passed}, `dip of "nodes.PowerOn" > 25%`: {open, compare.Undecided}, `dip of "nodes.Power" > 25%`: {open, compare.Undecided},
		"dip > 5%": {unseen, compare.Passed}, "dip > 2%": {unseen, compare.Undecided}, "stall > 1 s": {unseen, compare.Passed},
		"stall > 50 ms": {unseen, compare.Undecided}, "lost_operations > 1k": {unseen, compare.Passed}, "lost_operations > 50": {unseen, compare.Undecided},
		"first_io > 1 s": {unseen, compare.Undecided},
	} {
		if g := judge(t, want.of, text); g.Outcome != want.outcome || len(g.Checks) != 1 {
			t.Errorf("%s: %+v", text, g)
		}
	}
	if g := judge(t, sets(t, s.cuts(1, 0.3, 2, 30, 5000), s.cuts(1, 0.3, 2, 90, 5000)), "recovery > 10 s"); g.Outcome != compare.Undecided ||
		!strings.HasSuffix(g.Checks[0].Reason, "a single run does not show how much it varies from run to run.") {
		t.Errorf("%+v", g)
	}
	for _, text := range []string{"recovery > 10%", "dip > 10 s", "stall > 10 k", "recovery > 1.2.3 s", "lost_operations > 5%", "recoveries > 1 s"} {
		if condition, err := compare.ParseCondition(text); err == nil {
			t.Errorf("%s: %+v", text, condition)
		}
	}
}

// TestCostsOfSingleRuns have differences and no verdict. An event that one of them lacks is left out.
func TestCostsOfSingleRuns(t *testing.T) {
	s := newSource(54, 0.02)
	a, b := cut(s.run(1), 0.3, 2, 30, 5000), cut(s.run(1), 0, 2, -40, 0)
	c, err := compare.Runs([]*document.Run{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, f := range c.Costs[0].Figures {
		if f.Verdict != "" {
			t.Errorf("%+v", f)
		}
		texts = append(texts, f.Title+": "+f.ValueText(0)+", "+f.ValueText(1)+", "+compare.SignedAmount(f.Unit, f.Differences[1]))
	}
	want := []string{"dip: 30 %, none seen (up to 4 %), –", "longest stall: 2.00 s, 2.00 s, 0 s", "back to 5 %: 30.0 s, ≥ 40.0 s, –",
		"back to 10 %: 30.0 s, ≥ 40.0 s, –", "operations lost: 5.00k, none seen (up to 100), –", "p99 during: 10.0 ms, 10.0 ms, 0 s"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	a.Summary.Impacts[0].Event = "nodes.Shutdown"
	if c, err = compare.Runs([]*document.Run{a, b}, compare.Options{}); err != nil || len(c.Costs) != 0 {
		t.Errorf("%+v, %v", c.Costs, err)
	}
}

// TestScalingIsCompared between fits that are answers.
func TestScalingIsCompared(t *testing.T) {
	s := newSource(55, 0.01)
	grow := func(n int, peak float64) []*document.Run {
		list := s.runs(n, 1)
		for _, r := range list {
			at := result.Number(peak * math.Exp(0.02*s.random.NormFloat64()))
			r.Summary.Scaling = &result.Scaling{Unit: "IOPS", Answered: true, Fit: &result.ScalingFit{Model: "usl",
				Lambda: result.ScalingEstimate{Value: 1000, Low: 990, High: 1010}, Sigma: result.ScalingEstimate{Value: 0.02, Low: 0, High: 0.05},
				Kappa: result.ScalingEstimate{Value: 1e-4, Low: 5e-5, High: 2e-4}, Peak: &result.ScalingEstimate{Value: at, Low: at / 2, High: at * 2}}}
		}
		return list
	}
	verdicts := func(c *compare.Comparison) (list []compare.Verdict) {
		for _, f := range c.Scaling {
			list = append(list, f.Verdict)
		}
		return list
	}
	if got := verdicts(sets(t, grow(4, 50), grow(4, 100))); !slices.Equal(got, []compare.Verdict{compare.NoneSeen, compare.NoneSeen, compare.NoneSeen, compare.Different}) {
		t.Errorf("%q", got)
	}
	a, b := grow(1, 50), grow(1, 100)
	c, err := compare.Runs([]*document.Run{a[0], b[0]}, compare.Options{})
	if err != nil || len(c.Scaling) != 4 || c.Scaling[0].ValueText(0) != "1.00k IOPS (990 IOPS to 1.01k IOPS)" {
		t.Errorf("%+v, %v", c.Scaling, err)
	}
	b[0].Summary.Scaling.Answered = false
	if c, err = compare.Runs([]*document.Run{a[0], b[0]}, compare.Options{}); err != nil || len(c.Scaling) != 0 {
		t.Errorf("%+v, %v", c.Scaling, err)
	}
}

// TestNoDifferenceIsTrue: "No figure differs" is only said of figures that exist and can be known.
func TestNoDifferenceIsTrue(t *testing.T) {
	s := newSource(56, 0.02)
	of := func(change func(a, b *document.Run)) string {
		r := s.run(1)
		a, b := *r, *r
		change(&a, &b)
		c, err := compare.Runs([]*document.Run{&a, &b}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c.NoDifference()
	}
	for want, change := range map[string]func(a, b *document.Run){
		"No figure differs.": func(_, _ *document.Run) {},
		"No figure can be compared: the runs have none in common that is known.": func(_, b *document.Run) { b.Summary.Results = nil },
		"No known figure differs, which decides nothing: run B: The data was never written.": func(_, b *document.Run) {
			b.Summary.Validity = result.Qualified
			b.Summary.Findings = []finding.Finding{{Code: "unwritten", Severity: finding.Undecided, Claim: "The data was never written."}}
		},
		"No known figure differs, which decides nothing: run A is INVALID: half of the data is missing.": func(a, _ *document.Run) {
			a.Summary.Validity, a.Summary.ValidityReason = result.Invalid, "half of the data is missing."
		},
	} {
		if got := of(change); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
