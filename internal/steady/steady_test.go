package steady_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/steady"
	"github.com/braggdev/bragg/internal/testreq"
)

// shape is the noiseless course of a load: a factor for second i of n.
type shape func(i, n int) float64

// labelled is a kind of load with the right answers.
type labelled struct {
	name        string
	shape       shape
	noise       float64
	correlation float64 // of the noise, from one second to the next
	steady      bool    // as a whole
	// settles: it becomes steady after a warm-up of this share of its length, give or take settlesWithin; negative: it never does.
	settles, settlesWithin float64
}

func flat(int, int) float64 { return 1 }

func ramp(share float64) shape {
	return func(i, n int) float64 { return min(1, 0.1+0.9*float64(i)/(share*float64(n))) }
}

func step(share, before float64) shape {
	return func(i, n int) float64 {
		if float64(i) < share*float64(n) {
			return before
		}
		return 1
	}
}

var kinds = []labelled{
	{"flat", flat, 0.03, 0, true, 0, 0.02},
	{"flat, noise of 10 %", flat, 0.10, 0, true, 0, 0.02},
	{"flat, noise of 20 %", flat, 0.20, 0, true, 0, 0.02},
	{"flat, correlated noise of 5 %", flat, 0.05, 0.8, true, 0, 0.05},
	{"flat, strongly correlated noise of 4 %", flat, 0.04, 0.9, true, 0, 0.1},
	{"flat, correlated noise of 10 %", flat, 0.10, 0.6, true, 0, 0.05},
	{"one slow second", func(i, n int) float64 { return map[bool]float64{true: 0.1, false: 1}[i == n/3] }, 0.05, 0, true, 0, 0.02},
	{"a drift of 3 %", func(i, n int) float64 { return 1 + 0.03*float64(i)/float64(n) }, 0.05, 0, true, 0, 0.5},
	{"a drift of 40 %", func(i, n int) float64 { return 1 + 0.4*float64(i)/float64(n) }, 0.05, 0, false, -1, 0},
	{"a fall of 40 %", func(i, n int) float64 { return 1 - 0.4*float64(i)/float64(n) }, 0.05, 0, false, -1, 0},
	{"a drift of 40 % in correlated noise", func(i, n int) float64 { return 1 + 0.4*float64(i)/float64(n) }, 0.04, 0.7, false, -1, 0},
	{"a step down after the middle", func(i, n int) float64 { return 1 / step(0.6, 0.6)(i, n) }, 0.05, 0, false, -1, 0},
	{"a step down late", func(i, n int) float64 { return step(0.8, 1.5)(i, n) }, 0.05, 0, false, -1, 0},
	{"a ramp of a fifth", ramp(0.2), 0.05, 0, false, 0.2, 0.06},
	{"a short ramp", ramp(0.1), 0.05, 0, false, 0.1, 0.04},
	{"an exponential warm-up", func(i, n int) float64 { return 1 - 0.8*math.Exp(-10*float64(i)/float64(n)) }, 0.04, 0, false, 0.25, 0.15},
	{"a slow exponential warm-up", func(i, n int) float64 { return 1 - 0.8*math.Exp(-1.5*float64(i)/float64(n)) }, 0.05, 0, false, -1, 0},
	{"a sawtooth of 30 s", func(i, _ int) float64 { return 0.6 + 0.8*float64(i%30)/30 }, 0.05, 0, false, -1, 0},
	{"a square wave of 20 s", func(i, _ int) float64 { return 1 - 0.35*float64(i/10%2) }, 0.05, 0, false, -1, 0},
	{"a square wave of 60 s", func(i, _ int) float64 { return 1 - 0.35*float64(i/30%2) }, 0.05, 0, false, -1, 0},
	{"a sine", func(i, _ int) float64 { return 1 + 0.25*math.Sin(float64(i)/6) }, 0.05, 0, false, -1, 0},
	{"the cliff of a full cache", step(0.25, 4), 0.06, 0, false, 0.25, 0.03},
	{"the cliff of a full cache, noisy after it", step(0.3, 3), 0.10, 0.3, false, 0.3, 0.03},
	{"a cliff at the end", func(i, n int) float64 { return 1 / step(0.85, 4)(i, n) }, 0.06, 0, false, -1, 0},
}

// draw makes one series of a kind.
func (k *labelled) draw(random *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	noise := random.NormFloat64()
	for i := range values {
		noise = k.correlation*noise + math.Sqrt(1-k.correlation*k.correlation)*random.NormFloat64()
		values[i] = 1000 * k.shape(i, n) * max(0, 1+k.noise*noise)
	}
	return values
}

// TestLabelledSeries: 50 series of each kind, from two to ten minutes long. Steady or not is right for at least 95 % of each kind, as a
// whole and after the warm-up; and so it is for latencies that change by 2.5 times as much, beside a rate that is flat.
func TestLabelledSeries(t *testing.T) {
	testreq.Rounds(t, 20, 50, func(t *testing.T, series int) {
		const seed = 11
		for _, latency := range []bool{false, true} {
			random := rand.New(rand.NewPCG(seed, 0))
			for _, k := range kinds {
				whole, settled, end := 0, 0, 0
				for range series {
					n := 120 + random.IntN(480)
					values := k.draw(random, n)
					list := []steady.Series{{Name: "IOPS", Values: values}}
					if latency {
						other := labelled{shape: flat, noise: 0.05}
						list = []steady.Series{{Name: "IOPS", Values: other.draw(random, n)}, {Name: "p99", Latency: true, Values: latencies(values)}}
					}
					v, after := steady.Judge(list...), steady.WarmUp(list...)
					whole += one(v.State == steady.Steady == k.steady)
					settled += one(after.State == steady.Steady == (k.settles >= 0))
					end += one(k.settles < 0 || math.Abs(float64(after.WarmUp)/float64(n)-k.settles) <= k.settlesWithin)
				}
				t.Logf("%-45s %d %d %d", k.name, whole, settled, end)
				if least := series * 95 / 100; whole < least || settled < least || end < least {
					t.Errorf("seed %d: %s (latency: %t): of %d, %d are right as a whole and %d after the warm-up, whose end is right in %d",
						seed, k.name, latency, series, whole, settled, end)
				}
			}
		}
	})
}

func latencies(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = 1e6 * math.Pow(max(v, 1)/1000, -2.5)
	}
	return list
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestVerdicts: what a verdict says.
func TestVerdicts(t *testing.T) {
	series := func(n int, noise float64, s shape) steady.Series {
		random, k := rand.New(rand.NewPCG(12, 0)), labelled{shape: s, noise: noise}
		return steady.Series{Name: "IOPS", Values: k.draw(random, n)}
	}
	gaps := series(60, 0.02, flat)
	for i := range 30 {
		gaps.Values[2*i] = math.NaN()
	}
	for name, c := range map[string]struct {
		series steady.Series
		state  steady.State
		why    string
	}{
		"few values":        {series(19, 0.01, flat), steady.TooShort, "too short to say"},
		"much noise":        {series(20, 0.2, flat), steady.TooShort, "too short to say: "},
		"nothing":           {steady.Series{Name: "IOPS", Values: make([]float64, 60)}, steady.TooShort, "too short to say"},
		"constant":          {series(20, 0, flat), steady.Steady, ""},
		"every other value": {gaps, steady.Steady, ""},
		"rise":              {series(120, 0.02, func(i, n int) float64 { return 1 + 0.5*float64(i)/float64(n) }), steady.Unsteady, "its IOPS rose by "},
		"fall":              {series(120, 0.02, func(i, n int) float64 { return 1 - 0.5*float64(i)/float64(n) }), steady.Unsteady, "its IOPS fell by "},
		"square wave":       {series(120, 0.02, func(i, _ int) float64 { return 1 + 0.6*float64(i/6%2) }), steady.Unsteady, "the levels of its IOPS differ by "},
		"changes of a second": {series(120, 0.02, func(i, _ int) float64 { return 1 + float64(i%2) }), steady.Unsteady,
			"its IOPS scatter by 33 % around their mean (limit 30 %)"},
	} {
		v := steady.Judge(c.series)
		if v.State != c.state || !strings.HasPrefix(v.Why(), c.why) || (c.why == "") != (v.Why() == "") {
			t.Errorf("%s: %d, %q, want %d, %q", name, v.State, v.Why(), c.state, c.why)
		}
	}
	if v := steady.Judge(); v.State != steady.TooShort {
		t.Errorf("no series: %+v", v)
	}
}

// TestFewValues: of series too short for their noise, at most 5 % are called unsteady; most of the others remain undecided.
func TestFewValues(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, series int) {
		const seed = 14
		random := rand.New(rand.NewPCG(seed, 0))
		for _, n := range []int{20, 30, 60} {
			states := map[steady.State]int{}
			for range series {
				k := labelled{shape: flat, noise: 0.2}
				states[steady.Judge(steady.Series{Name: "IOPS", Values: k.draw(random, n)}).State]++
			}
			if states[steady.Unsteady] > series*5/100 || n == 20 && states[steady.TooShort] < series/2 {
				t.Errorf("seed %d: of %d series with %d values: %v", seed, series, n, states)
			}
		}
	})
}

// TestLongSeries: a judgement of four thousand values, many of them changes, is bounded.
func TestLongSeries(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 0))
	for _, s := range []shape{flat, func(i, _ int) float64 { return 1 + 0.8*float64(i/10%2) }} {
		k := labelled{shape: s, noise: 0.05}
		v := steady.WarmUp(steady.Series{Name: "IOPS", Values: k.draw(random, 4096)})
		t.Log(v.State, v.Why())
	}
}

// A difference of many times the mean is a factor, not a percentage of five digits.
func TestDifferences(t *testing.T) {
	for found, want := range map[float64]string{
		0.34: "the levels of its p99 differ by 34 % of the mean", 9.96: "the levels of its p99 differ by 996 % of the mean",
		263.18: "the levels of its p99 differ by 263 times the mean",
	} {
		r := steady.Reason{Criterion: steady.Levels, Series: "p99", Found: found, Limit: 0.5}
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
