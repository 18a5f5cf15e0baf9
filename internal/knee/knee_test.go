package knee

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// search runs a search against a scripted platform.
func search(runsMax int, meets func(factor float64) bool) Answer {
	s := New(runsMax)
	for {
		factor, more := s.Next()
		if !more {
			return s.Answer()
		}
		s.Add(Observation{Factor: factor, Rate: 1000 * factor, Met: meets(factor)})
	}
}

func TestSharpKnee(t *testing.T) {
	for _, knee := range []float64{0.03, 0.4, 1, 1.7, 9, 50} {
		a := search(24, func(f float64) bool { return f <= knee })
		if a.Kind != Found || !a.Precise || a.Low > knee || a.High < knee {
			t.Errorf("knee %v: %v in %d runs, %v to %v, precise %v", knee, a.Kind, len(a.Runs), a.Low, a.High, a.Precise)
		}
		if math.Abs(a.Rate-1000*a.Factor) > 1e-6*a.Rate {
			t.Errorf("knee %v: rate %v at factor %v", knee, a.Rate, a.Factor)
		}
	}
}

func TestSameRunsSameAnswer(t *testing.T) {
	meets := func(f float64) bool { return f <= 2.3 }
	a, b := search(RunsDefault, meets), search(RunsDefault, meets)
	for i := range a.Runs {
		if a.Runs[i] != b.Runs[i] {
			t.Fatalf("run %d: %+v and %+v", i, a.Runs[i], b.Runs[i])
		}
	}
}

// The interval holds the rate at which half of the runs meet the threshold, in about 95 % of searches.
func TestNoisyKnee(t *testing.T) {
	testreq.Rounds(t, 30, 100, func(t *testing.T, searches int) {
		const seed = 7
		n := float64(searches)
		least := min(0.9, 0.95-2*math.Sqrt(0.95*0.05/n)) // less by two standard errors with few searches
		random := rand.New(rand.NewPCG(seed, 0))
		for _, noise := range []float64{0.02, 0.1, 0.2} {
			covered, runs, width := 0, 0, 0.0
			for range searches {
				knee := math.Exp(4 * (random.Float64() - 0.5))
				a := search(RunsDefault, func(f float64) bool {
					return random.Float64() < 1/(1+math.Exp(math.Log(f/knee)/noise))
				})
				runs += len(a.Runs)
				width += math.Log(a.High / a.Low)
				if a.Kind == Found && a.Low <= knee && knee <= a.High {
					covered++
				}
			}
			t.Logf("noise %v: covered %d of %d, mean %.1f runs, interval × %.2f", noise, covered, searches, float64(runs)/n, math.Exp(width/n))
			if share := float64(covered) / n; share < least {
				t.Errorf("seed %d, noise %v: the interval holds the knee in %.1f %% of searches", seed, noise, share*100)
			}
		}
	})
}

func TestAlwaysAndNeverMet(t *testing.T) {
	always := search(RunsDefault, func(float64) bool { return true })
	if always.Kind != AlwaysMet || always.Factor != FactorMax || len(always.Runs) != 8 {
		t.Errorf("always met: %+v", always)
	}
	if text := always.Sentence("p99 < 1ms"); !strings.HasPrefix(text, "p99 < 1ms holds at every rate tried, up to 64k operations/s over all VMs, 64.0 times the scenario's rate") {
		t.Error(text)
	}
	never := search(RunsDefault, func(float64) bool { return false })
	if never.Kind != NeverMet || never.Factor != 1/FactorMax {
		t.Errorf("never met: %+v", never)
	}
	// Too few runs to reach the end: the highest rate tried.
	if a := search(3, func(float64) bool { return true }); a.Kind != AlwaysMet || a.Factor != 4 {
		t.Errorf("three runs: %+v", a)
	}
	few := New(RunsDefault)
	few.Add(Observation{Factor: 1, Rate: 100})
	few.Add(Observation{Factor: 0.5, Rate: 50, Few: true, Undecided: "too few operations for p99"})
	if factor, more := few.Next(); more {
		t.Errorf("a rate with too few operations is followed by %v", factor)
	}
	if a := New(5).Answer(); a.Kind != Unknown || !strings.Contains(a.Sentence("p99 < 1ms"), "not known") {
		t.Errorf("no run: %+v", a)
	}
}

// One disturbed run at a low rate does not lead the search to a wrong answer for good.
func TestOneDisturbedRun(t *testing.T) {
	n := 0
	a := search(20, func(f float64) bool {
		n++
		return n != 1 && f <= 3 // the first run misses at a third of the knee
	})
	if a.Low > 3 || a.High < 3 {
		t.Errorf("the interval %v to %v does not hold 3: %+v", a.Low, a.High, a.Runs)
	}
}

// A platform that meets the threshold again at higher rates: the answer is one of its knees, with runs on both sides of it, and runs
// that contradict each other are reported.
func TestNotMonotonic(t *testing.T) {
	a := search(20, func(f float64) bool { return f < 0.9 || f >= 1.5 && f < 6 })
	below, above := 0.0, math.Inf(1)
	for _, o := range a.Runs {
		if o.Met && o.Factor <= a.Factor {
			below = max(below, o.Factor)
		} else if !o.Met && o.Factor >= a.Factor {
			above = min(above, o.Factor)
		}
	}
	if a.Kind != Found || below < 0.9*a.Factor || above > 1.1*a.Factor {
		t.Errorf("met up to %v, missed from %v: %+v", below, above, a)
	}
	s := New(RunsDefault)
	for factor, met := range map[float64]bool{1: false, 0.5: true, 2: true} {
		s.Add(Observation{Factor: factor, Rate: 100 * factor, Met: met})
	}
	b := s.Answer()
	if text := b.Sentence("p99 < 1ms"); b.High/b.Low < 2 || !strings.Contains(text, "Runs contradict each other: one missed the threshold at 1 times") {
		t.Errorf("%v to %v: %s", b.Low, b.High, text)
	}
}

func TestUndecidedRunsCountAsMissed(t *testing.T) {
	s := New(RunsDefault)
	for {
		factor, more := s.Next()
		if !more {
			break
		}
		o := Observation{Factor: factor, Rate: 100 * factor, Met: factor < 2}
		if !o.Met {
			o.Undecided = "too few operations for p99"
		}
		s.Add(o)
	}
	a := s.Answer()
	if a.Kind != Found || a.High > 2.3 || a.Undecided == 0 || !strings.Contains(a.Sentence("p99 < 1ms"), "did not decide and count as missed") {
		t.Errorf("%+v", a)
	}
}

func TestParseThreshold(t *testing.T) {
	if x, err := ParseThreshold("p99 < 1ms"); err != nil || x.Value != 1e6 {
		t.Errorf("%+v, %v", x, err)
	}
	for text, want := range map[string]string{"p99 > 1ms": "upper bound", "cv < 1": "not a statistic", "longest_stall < 1s": "not a statistic", "p99": "no comparison"} {
		if _, err := ParseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// load is a load with a rate: 2,000 operations of 0.5 ms in 10 s, and slow ones of 5 ms.
func load(slow, notIssued uint64) result.LoadSummary {
	h := &stat.Histogram{}
	h.RecordN(5e5, 2000-slow)
	h.RecordN(5e6, slow)
	return result.LoadSummary{Workload: "OLTP", Engines: []interval.Engine{{Loop: interval.LoopOpen}}, FromNanos: 1e9, ToNanos: 11e9,
		Total: interval.Traffic{Operations: 2000, Service: h, Response: h}, Due: 2000 + notIssued, NotIssued: notIssued}
}

func TestObserve(t *testing.T) {
	x, err := ParseThreshold("p99 < 1ms")
	if err != nil {
		t.Fatal(err)
	}
	closed := load(1000, 0)
	closed.Engines = []interval.Engine{{Loop: interval.LoopClosed}}
	prefill := load(1000, 0)
	prefill.Prefill = true
	for name, c := range map[string]struct {
		summary   result.Summary
		met       bool
		undecided string
		invalid   bool
	}{
		"met":                        {summary: result.Summary{Loads: []result.LoadSummary{load(10, 0), closed, prefill}}, met: true},
		"missed":                     {summary: result.Summary{Loads: []result.LoadSummary{load(10, 0), load(30, 0)}}},
		"dropped operations miss it": {summary: result.Summary{Loads: []result.LoadSummary{load(10, 100)}}},
		"no rate":                    {summary: result.Summary{Loads: []result.LoadSummary{closed}}, undecided: "no load with a rate ran"},
		"met in a bad measurement": {summary: result.Summary{Loads: []result.LoadSummary{load(10, 0)}, Validity: result.Invalid,
			ValidityReason: "starved"}, undecided: "starved"},
		"missed in a bad measurement": {summary: result.Summary{Loads: []result.LoadSummary{load(30, 0)}, Validity: result.Invalid,
			ValidityReason: "starved"}, invalid: true},
		"interrupted": {summary: result.Summary{Loads: []result.LoadSummary{load(10, 0)}, Ended: result.EndedInterrupted},
			undecided: "the run did not complete"},
	} {
		if c.summary.Ended == "" {
			c.summary.Ended = result.EndedCompleted
		}
		o := Observe(&c.summary, x, 2)
		if o.Met != c.met || !strings.HasPrefix(o.Undecided, c.undecided) || (o.Undecided == "") != (c.undecided == "") || (o.Invalid != "") != c.invalid {
			t.Errorf("%s: %+v", name, o)
		}
	}
	s := result.Summary{Ended: result.EndedCompleted, Loads: []result.LoadSummary{load(10, 0)}}
	if o := Observe(&s, x, 2); o.Rate != 200 || o.Factor != 2 || math.Abs(float64(o.Value)-5e5) > 5e3 {
		t.Errorf("%+v", o)
	}
}
