package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// source makes runs of one scenario: IOPS whose seconds correlate (autoregression of 0.8, deviation 10 %, five minutes), and latency
// percentiles that vary more from run to run the rarer they are. Spread is the deviation of the level from run to run.
type source struct {
	random *rand.Rand
	spread float64
	made   int
}

func newSource(seed uint64, spread float64) *source {
	return &source{random: rand.New(rand.NewPCG(seed, 0)), spread: spread}
}

// run makes a run of this speed: 0.9 is a slowdown by 10 %.
func (s *source) run(speed float64) *document.Run {
	const seconds = 300
	s.made++
	level := speed * math.Exp(s.spread*s.random.NormFloat64())
	end := int64(seconds * 1e9)
	unknown := result.Number(math.NaN())
	var points result.Points
	mean, state := 0.0, s.random.NormFloat64()
	for at := range seconds {
		state = 0.8*state + 0.6*s.random.NormFloat64()
		v := 20_000 * level * (1 + 0.1*state)
		mean += v / seconds
		points = append(points, result.Point{Seconds: float64(at) + 0.5, Value: v})
	}
	iops := result.Evaluated{Name: "iops", Title: "IOPS", Type: "iops", Unit: "IOPS", ToNanos: end,
		Series: []result.Series{{Name: "all", Points: points}},
		Stats: []result.Stats{{Series: "all", Count: seconds, Distribution: result.Distribution{Mean: result.Number(mean),
			Median: result.Number(mean), P95: unknown, P99: unknown, P999: unknown, Max: unknown, Min: unknown, CV: 0.1}}}}
	time := func(nanos, spread float64) result.Number {
		return result.Number(nanos / level * math.Exp(spread*s.random.NormFloat64()))
	}
	latency := result.Evaluated{Name: "latency", Title: "Latency", Type: "latency", Unit: "ns", ToNanos: end,
		Stats: []result.Stats{{Series: "all", Kind: "service", Count: 6e6, Distribution: result.Distribution{Mean: time(1e6, 0), Median: time(0.9e6, 0.005),
			P95: time(2e6, 0.01), P99: time(4e6, 0.02), P999: time(9e6, 0.08), Max: unknown, Min: unknown, CV: 1}}}}
	return &document.Run{
		Manifest: result.Manifest{Run: fmt.Sprintf("run-%d", s.made), Scenario: result.ScenarioInfo{Name: "oltp", Hash: "one"}},
		Summary: result.Summary{Verdict: result.Pass, Reason: "All thresholds were met.", Ended: result.EndedCompleted, Duration: end, Results: []result.Evaluated{iops, latency},
			Phases: []result.Window{{Name: "run", ToNanos: end}}},
	}
}

func (s *source) runs(n int, speed float64) []*document.Run {
	var list []*document.Run
	for range n {
		list = append(list, s.run(speed))
	}
	return list
}

func sets(t *testing.T, a, b []*document.Run) *compare.Comparison {
	t.Helper()
	c, err := compare.OfSets(a, b, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func different(c *compare.Comparison) bool { return strings.HasPrefix(c.Headline, "B is different") }

// TestHeadlineErrorRates: of all pairs of sets without a difference at most 5 % are called different, whatever the number of runs;
// a slowdown by 10 % is called different in at least 95 %, with five runs in each set and a spread of 2 % from run to run. Four
// numbers are tested together each time.
func TestHeadlineErrorRates(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, pairs int) {
		const seed = 21
		for _, c := range []struct {
			runs   int
			spread float64
			speed  float64
		}{
			{2, 0.02, 1}, {3, 0.02, 1}, {5, 0.02, 1}, {5, 0.05, 1}, {5, 0.02, 0.9}, {5, 0.02, 1.1},
		} {
			s := newSource(seed, c.spread)
			called := 0
			for range pairs {
				if different(sets(t, s.runs(c.runs, 1), s.runs(c.runs, c.speed))) {
					called++
				}
			}
			t.Logf("%d runs in each set, spread %v, speed %v: %d of %d called different", c.runs, c.spread, c.speed, called, pairs)
			least, most := 0, pairs*5/100
			if c.speed != 1 {
				least, most = pairs*95/100, pairs
			}
			if called < least || called > most {
				t.Errorf("seed %d: want %d to %d", seed, least, most)
			}
		}
	})
}

func TestSetsOfSingleRuns(t *testing.T) {
	s := newSource(1, 0.02)
	c := sets(t, s.runs(1, 1), s.runs(1, 0.5))
	if !strings.HasPrefix(c.Headline, "Too few runs: 1 run of A and 1 run of B; chance cannot be distinguished from change.") {
		t.Error(c.Headline)
	}
	for _, n := range c.Sets.Numbers {
		if n.Verdict != compare.TooFew || n.Reason == "" || math.IsNaN(float64(n.Ratio)) || !math.IsNaN(float64(n.Low)) {
			t.Errorf("%+v", n)
		}
	}
	single, err := compare.Runs(s.runs(2, 1), compare.Options{})
	if err != nil || !strings.Contains(single.Headline, "chance cannot be distinguished from change") {
		t.Error(single.Headline, err)
	}
}

// TestExchangedSets: exchanging the sets inverts every ratio and changes no verdict.
func TestExchangedSets(t *testing.T) {
	s := newSource(5, 0.03)
	a, b := s.runs(4, 1), s.runs(3, 0.93)
	one, other := sets(t, a, b).Sets.Numbers, sets(t, b, a).Sets.Numbers
	if len(one) != 4 || len(other) != 4 {
		t.Fatalf("%d and %d numbers", len(one), len(other))
	}
	for i := range one {
		x, y := one[i], other[i]
		if x.Verdict != y.Verdict || math.Abs(float64(x.Ratio*y.Ratio)-1) > 1e-9 || math.Abs(float64(x.Low*y.High)-1) > 1e-6 ||
			math.Abs(float64(x.P-y.P)) > 1e-6 || x.Noise-y.Noise > 1e-9 {
			t.Errorf("%+v\n%+v", x, y)
		}
	}
}

func TestSetsSayWhatTheyFound(t *testing.T) {
	s := newSource(2, 0.005)
	c := sets(t, s.runs(5, 1), s.runs(5, 1))
	if !strings.HasPrefix(c.Headline, "No difference seen between A and B in 4 numbers; would have seen ") ||
		!strings.Contains(c.Headline, "4 numbers were tested together, with a chance of at most 5 %") {
		t.Error(c.Headline)
	}
	// Tested together: IOPS, and median, p99 and p99.9 of latency.
	if n := c.Sets.Numbers; len(n) != 4 || n[0].Metric != "mean" || n[1].Metric != "median" || n[3].Metric != "p99.9" || c.Sets.Tested != 4 {
		t.Errorf("%+v", n)
	}
	if d := float64(c.Sets.Numbers[0].Detectable); d < 0.005 || d > 0.08 {
		t.Errorf("IOPS would show a change of %v", d)
	}
	c = sets(t, s.runs(5, 1), s.runs(5, 0.8))
	if !strings.HasPrefix(c.Headline, "B is different from A in 4 of 4 numbers: ") || !strings.Contains(c.Headline, "% lower (95 %: ") ||
		!strings.Contains(c.Headline, "; and 1 more.") {
		t.Error(c.Headline)
	}
}

func TestSetsDoubtInvalidRuns(t *testing.T) {
	s := newSource(3, 0.005)
	a, b := s.runs(3, 1), s.runs(3, 0.5)
	b[1].Summary.Validity, b[1].Summary.ValidityReason = result.Invalid, "The generator was starved."
	b[1].Summary.Findings = []finding.Finding{{Code: "generator-starved", Severity: finding.Undecided, Claim: "The generator was starved."}}
	c := sets(t, a, b)
	if c.Headline != "Undecided: run B2 is INVALID: The generator was starved." {
		t.Error(c.Headline)
	}
	if shown := c.ShownFindings(); len(shown) != 1 || shown[0].Of != "0 of 3 runs of A, 1 of 3 runs of B, as B2: " {
		t.Errorf("%+v", shown)
	}
}

func TestSetsSayWhyNumbersHaveNoRatio(t *testing.T) {
	s := newSource(4, 0.005)
	a, b := s.runs(3, 1), s.runs(3, 1)
	a[0].Summary.Results[0].Stats[0].Mean = 0
	b[1].Summary.Results[1].Stats[0].P99 = result.Number(math.NaN())
	b[2].Summary.Results[1].Stats[0].AtLeast = result.Bounds{"p999"}
	numbers := sets(t, a, b).Sets.Numbers
	for i, want := range []string{"it is 0 in run A1", "", "run B2 does not have it", "it is only a lower bound in run B3, whose operations failed or were dropped"} {
		if numbers[i].Reason != want || (numbers[i].Verdict == "") != (want != "") {
			t.Errorf("%s: %q, %q", numbers[i].Label(), numbers[i].Verdict, numbers[i].Reason)
		}
	}
}

func TestSetsRefuse(t *testing.T) {
	s := newSource(6, 0.01)
	a := s.runs(2, 1)
	for name, of := range map[string][2][]*document.Run{
		"none": {a, nil}, "twice in one": {{a[0], a[0]}, s.runs(2, 1)}, "in both": {a, a}, "too many": {s.runs(compare.SetRunsMax+1, 1), a},
	} {
		if _, err := compare.OfSets(of[0], of[1], compare.Options{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSetsWarnOfFactors(t *testing.T) {
	s := newSource(7, 0.01)
	a, b := s.runs(2, 1), s.runs(2, 1)
	for i, r := range b {
		r.Manifest.Versions = map[string]string{"kernel": "7"}
		r.Manifest.Environment = map[string]string{"memory": "8 GiB", "host": fmt.Sprint("host-", i)}
		r.Manifest.Label, r.Manifest.Seed = "new", uint64(i)
	}
	warnings := strings.Join(sets(t, a, b).Warnings, "\n")
	if !strings.Contains(warnings, "The runs of set B are not repetitions: they differ in host.") ||
		!strings.Contains(warnings, "A and B differ in 2 factors (version of kernel and memory)") {
		t.Error(warnings)
	}
}

// TestFailuresOfOneSet: they are in the headline, although a count of zero has no ratio.
func TestFailuresOfOneSet(t *testing.T) {
	s := newSource(8, 0.01)
	a, b := s.runs(2, 1), s.runs(2, 1)
	for i, r := range append(a, b...) {
		load := result.LoadSummary{Workload: "OLTP", Group: "g", Instance: 1, VMs: 1, ToNanos: 300e9}
		load.Total.Operations = 100
		if i >= len(a) {
			load.Total.Errors = map[string]uint64{"EIO": 3}
		}
		r.Summary.Loads = []result.LoadSummary{load}
	}
	c := sets(t, a, b)
	if len(c.Sets.Counts) != 1 || !strings.HasSuffix(c.Headline, "Every run of B has errors in OLTP, no run of A.") {
		t.Errorf("%s\n%+v", c.Headline, c.Sets.Counts)
	}
}
