package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1e-12, math.Abs(b)) }

func TestStudentAgainstGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		df := rapid.Float64Range(1, 200).Draw(t, "df")
		p := rapid.Float64Range(0.0001, 0.9999).Draw(t, "p")
		of := distuv.StudentsT{Sigma: 1, Nu: df}
		if got, want := stat.StudentQuantile(p, df), of.Quantile(p); !near(got, want, 1e-6) && math.Abs(got-want) > 1e-6 {
			t.Fatalf("quantile %v of t(%v) is %v, want %v", p, df, got, want)
		}
		a, b, x := rapid.Float64Range(0.5, 3000).Draw(t, "a"), rapid.Float64Range(0.5, 3000).Draw(t, "b"), rapid.Float64Range(0, 1).Draw(t, "x")
		if got, want := stat.Beta(a, b, x), mathext.RegIncBeta(a, b, x); math.Abs(got-want) > 1e-9 {
			t.Fatalf("I_%v(%v, %v) is %v, want %v", x, a, b, got, want)
		}
	})
}

func exps(values ...float64) []float64 {
	for i := range values {
		values[i] = math.Exp(values[i])
	}
	return values
}

// TestWelchOfSleepData: R's t.test(extra ~ group, data = sleep) prints t = -1.8608, df = 17.776, p-value = 0.07939 and the interval
// -3.3654832 to 0.2054832 of the difference of group 1 and group 2.
func TestWelchOfSleepData(t *testing.T) {
	a := exps(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2)
	b := exps(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
	r, ok := stat.RatioOf(a, b, 0)
	if !ok || !near(math.Log(r.Value), 1.58, 1e-9) || !near(math.Log(r.Low), -0.2054832, 1e-5) || !near(math.Log(r.High), 3.3654832, 1e-6) ||
		!near(r.P, 0.07939, 1e-3) {
		t.Errorf("%+v, %v", r, ok)
	}
}

// TestDetectableAsPowerOfR: R's power.t.test(n = 20, delta = 1, sd = 1) prints power = 0.8689528.
func TestDetectableAsPowerOfR(t *testing.T) {
	// Twenty values of standard deviation 1 in each group.
	spread := math.Sqrt(19.0 / 20)
	values := make([]float64, 20)
	for i := range values {
		values[i] = math.Exp(spread * float64(1-2*(i%2)))
	}
	r, _ := stat.RatioOf(values, values, 0)
	if got := math.Log1p(r.Detectable(0.05, 0.8689528)); !near(got, 1, 1e-4) {
		t.Errorf("detects a difference of %v with that power, want 1", got)
	}
	if r.Value != 1 || r.P != 1 || !near(math.Log1p(r.Noise), 2.0243942*math.Sqrt2, 1e-6) {
		t.Errorf("%+v", r)
	}
}

func TestHolm(t *testing.T) {
	got := stat.Holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if !near(got[i], want, 1e-12) {
			t.Errorf("adjusted %v", got)
		}
	}
}

func TestRatioProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.1, 1e6), 2, 8)
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		resolution := rapid.SampledFrom([]float64{0, 0.008}).Draw(t, "resolution")
		r, ok := stat.RatioOf(a, b, resolution)
		swapped, _ := stat.RatioOf(b, a, resolution)
		if !ok || !near(r.Value, 1/swapped.Value, 1e-9) || !near(r.Low, 1/swapped.High, 1e-9) || !near(r.High, 1/swapped.Low, 1e-9) ||
			!near(r.P, swapped.P, 1e-6) || !near(r.Noise, swapped.Noise, 1e-6) {
			t.Fatalf("%+v, and swapped %+v", r, swapped)
		}
		scale := rapid.Float64Range(1e-3, 1e3).Draw(t, "scale")
		times := func(list []float64) []float64 {
			out := slices.Clone(list)
			for i := range out {
				out[i] *= scale
			}
			return out
		}
		scaled, _ := stat.RatioOf(times(a), times(b), resolution)
		if !near(r.Value, scaled.Value, 1e-9) || !near(r.Low, scaled.Low, 1e-6) || math.Abs(r.P-scaled.P) > 1e-6 {
			t.Fatalf("%+v, and in another unit %+v", r, scaled)
		}
		if r.Low > r.Value || r.Value > r.High || (r.P < stat.Level) != (r.Low > 1 || r.High < 1) {
			t.Fatalf("interval and probability contradict each other: %+v", r)
		}
	})
}

func TestRatioOfTooFewOrNone(t *testing.T) {
	for name, s := range map[string][2][]float64{
		"one run": {{1, 2}, {1}}, "zero": {{1, 0}, {1, 2}}, "unknown": {{1, 2}, {math.NaN(), 2}}, "none": {nil, {1, 2}},
	} {
		if r, ok := stat.RatioOf(s[0], s[1], 0); ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Equal values in all runs, such as a fixed rate, have no noise; a rounding difference is not a difference.
	exact := func(v float64) []float64 { return []float64{v, v, v} }
	if r, _ := stat.RatioOf(exact(1000), exact(1000), 0); r.P != 1 || r.Low != 1 || r.High != 1 {
		t.Errorf("%+v", r)
	}
	if r, _ := stat.RatioOf(exact(1000), exact(1007), 0.008); r.P != 1 {
		t.Errorf("%+v", r)
	}
	if r, _ := stat.RatioOf(exact(1000), exact(2000), 0.008); r.P != 0 || r.Low < 1.9 {
		t.Errorf("%+v", r)
	}
}

// runs simulates one number of several runs: the mean of 300 seconds that correlate (autoregression of 0.8, coefficient of variation
// 10 %), around a level that varies from run to run by spread, log-normally.
func runs(random *rand.Rand, n int, level, spread float64) []float64 {
	var list []float64
	for range n {
		const seconds = 300
		mean, state := 0.0, random.NormFloat64()
		for range seconds {
			state = 0.8*state + 0.6*random.NormFloat64()
			mean += (1 + 0.1*state) / seconds
		}
		list = append(list, mean*level*math.Exp(spread*random.NormFloat64()))
	}
	return list
}

// TestErrorRates holds both error rates of the comparison of two groups: without any difference at most 5 % are called different,
// and a slowdown of 10 % is called different in at least 95 %, with five runs each and a spread of 2.5 % from run to run (within the
// 5 % up to which replicates of MLPerf count as reproduced).
func TestErrorRates(t *testing.T) {
	testreq.Rounds(t, 500, 2000, func(t *testing.T, pairs int) {
		const seed = 12
		random := rand.New(rand.NewPCG(seed, 0))
		different := func(n, m int, levelB, spreadA, spreadB float64) float64 {
			count := 0
			for range pairs {
				r, ok := stat.RatioOf(runs(random, n, 100, spreadA), runs(random, m, levelB, spreadB), 0)
				if ok && r.P < stat.Level {
					count++
				}
			}
			return float64(count) / float64(pairs)
		}
		for _, c := range []struct {
			n, m             int
			spreadA, spreadB float64
		}{{2, 2, 0.025, 0.025}, {2, 2, 0, 0}, {3, 3, 0.025, 0.025}, {3, 3, 0.1, 0.01}, {5, 5, 0.025, 0.025}, {5, 5, 0.005, 0.1},
			{2, 10, 0.025, 0.025}, {3, 10, 0.05, 0.01}, {4, 10, 0.05, 0.01}, {10, 10, 0.025, 0.025}} {
			got := different(c.n, c.m, 100, c.spreadA, c.spreadB)
			t.Logf("A/A, %d and %d runs, spread %v and %v: %.2f %% called different", c.n, c.m, c.spreadA, c.spreadB, 100*got)
			most := 0.05 + 2*math.Sqrt(0.05*0.95/float64(pairs)) // 5 %, and two standard errors
			if c.spreadA != c.spreadB {
				most += 0.005 // Welch's approximation is slightly liberal with few runs and unequal spread
			}
			if got > most {
				t.Errorf("seed %d: too many", seed)
			}
		}
		for _, level := range []float64{90, 110} {
			got := different(5, 5, level, 0.025, 0.025)
			t.Logf("100 against %v, 5 runs each, spread 2.5 %%: %.2f %% called different", level, 100*got)
			if got < 0.95 {
				t.Errorf("seed %d: too few", seed)
			}
		}
	})
}
