package load_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/load"
)

// Every rate from 500 to 200,000 a second is kept: linear to a nanosecond, poisson within 0.1 % over enough arrivals.
func TestPacerKeepsItsRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{500, 20_000, 200_000} {
		linear := load.NewPacer(5, rate, false, 1)
		const operations = 1_000_000
		for range operations {
			linear.Advance(1)
		}
		if want := 5 + operations*1e9/rate; math.Abs(float64(linear.Next())-want) > 2 {
			t.Errorf("linear at %v/s: operation %d is due at %d ns, want %.1f", rate, operations, linear.Next(), want)
		}
		// The sum of n exponential gaps has the standard deviation √n·gap: 0.1 % is 5.5 of them at n = 30 million.
		poisson, arrivals := load.NewPacer(0, rate, true, 2), 30_000_000
		if testing.Short() {
			arrivals = 3_000_000
		}
		for range arrivals {
			poisson.Advance(1)
		}
		got := float64(arrivals) * 1e9 / float64(poisson.Next())
		if limit := 5.5 / math.Sqrt(float64(arrivals)); math.Abs(got/rate-1) > limit {
			t.Errorf("poisson at %v/s over %d arrivals gave %.3f/s", rate, arrivals, got)
		}
	}
}

// The gaps of a poisson schedule are exponential: Kolmogorov–Smirnov at alpha 1e-4.
func TestPoissonGapsAreExponential(t *testing.T) {
	t.Parallel()
	for key, rate := range []float64{500, 20_000, 200_000} {
		const n = 200_000
		p := load.NewPacer(0, rate, true, uint64(key))
		gaps, last := make([]float64, n), int64(0)
		for i := range gaps {
			gaps[i] = float64(p.Next() - last)
			last = p.Next()
			p.Advance(1)
		}
		slices.Sort(gaps)
		var distance float64
		for i, gap := range gaps {
			expected := 1 - math.Exp(-gap*rate/1e9)
			distance = max(distance, math.Abs(expected-float64(i)/n), math.Abs(expected-float64(i+1)/n))
		}
		// Kolmogorov's limit: P(√n·D > x) ≈ 2·exp(−2x²). Gaps are whole nanoseconds, which shifts the distribution
		// function by at most rate/1e9.
		if limit := math.Sqrt(math.Log(2/1e-4)/2)/math.Sqrt(n) + rate/1e9; distance > limit {
			t.Errorf("poisson at %v/s: distance %.5f from the exponential distribution, limit %.5f", rate, distance, limit)
		}
	}
}

func TestPacerIsDeterministicAndNeverGoesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 5e9).Draw(t, "rate")
		poisson := rapid.Bool().Draw(t, "poisson")
		start := rapid.Int64Range(-1e12, 1e15).Draw(t, "start")
		key := rapid.Uint64().Draw(t, "key")
		a, b := load.NewPacer(start, rate, poisson, key), load.NewPacer(start, rate, poisson, key)
		for i := range 200 {
			weight := float64(rapid.IntRange(1, 1<<20).Draw(t, "weight"))
			before := a.Next()
			a.Advance(weight)
			b.Advance(weight)
			if a.Next() < before || before < start {
				t.Fatalf("operation %d is due at %d after %d", i, a.Next(), before)
			}
			if a != b {
				t.Fatalf("two schedules of one key differ: %+v, %+v", a, b)
			}
			if a.Count() != uint64(i+1) {
				t.Fatalf("count %d after %d operations", a.Count(), i+1)
			}
		}
	})
}

// Keys and texts give families of draws without visible relation: bytes of draws are uniform (chi-square, 255 degrees of
// freedom, alpha 1e-4), and neighbors in key and number differ in half of their bits.
func TestDrawsAreUniform(t *testing.T) {
	t.Parallel()
	for _, next := range []func(i uint64) uint64{
		func(i uint64) uint64 { return load.Draw(42, i) },
		func(i uint64) uint64 { return load.Draw(i, 0) },
		func(i uint64) uint64 { return load.Draw(load.Key(7, i), 3) },
	} {
		var counts [256]float64
		const n = 1 << 16
		for i := range uint64(n) {
			word := next(i)
			for range 8 {
				counts[byte(word)]++
				word >>= 8
			}
		}
		var chi float64
		for _, c := range counts {
			chi += (c - n*8/256) * (c - n*8/256) / (n * 8 / 256)
		}
		if chi > 346.7 || chi < 177.9 {
			t.Errorf("bytes of draws: chi-square %.1f", chi)
		}
	}
	if load.KeyOf(1, "ab") == load.KeyOf(1, "ba") || load.KeyOf(1, "a") == load.KeyOf(1, "a\x00") {
		t.Error("different texts give one key")
	}
}
