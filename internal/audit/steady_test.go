package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/steady"
)

func TestWithout(t *testing.T) {
	on := func(from, to int64) extent.Extent { return extent.Extent{Device: "d", Offset: from, Length: to - from} }
	left := extent.Without([]extent.Extent{on(0, 100), on(200, 300)}, []extent.Extent{on(50, 60), on(90, 250), {Device: "e", Offset: 0, Length: 1000}})
	if got := extent.Bytes(left); got != 50+30+50 {
		t.Errorf("%v is left, %d bytes, want 130", left, got)
	}
	if got := extent.Bytes([]extent.Extent{on(0, 10), on(5, 20), on(20, 30)}); got != 30 {
		t.Errorf("overlapping extents have %d bytes, want 30", got)
	}
}

// TestSteadiness: labelled series with noise of 5 %, 200 of each kind; at least 95 % are judged right.
func TestSteadiness(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for name, c := range map[string]struct {
		at     func(i, n int) float64
		noise  float64
		steady bool
	}{
		"constant":              {func(_, _ int) float64 { return 1000 }, 0.05, true},
		"constant, noisy":       {func(_, _ int) float64 { return 1000 }, 0.2, true},
		"a drift of 3 %":        {func(i, n int) float64 { return 1000 + 30*float64(i)/float64(n) }, 0.05, true},
		"one slow second":       {func(i, n int) float64 { return map[bool]float64{true: 100, false: 1000}[i == n/2] }, 0.05, true},
		"a drift of 30 %":       {func(i, n int) float64 { return 1000 + 300*float64(i)/float64(n) }, 0.05, false},
		"a square wave of 20 s": {func(i, _ int) float64 { return 1000 - 350*float64(i/10%2) }, 0.05, false},
		"a square wave of 60 s": {func(i, _ int) float64 { return 1000 - 350*float64(i/30%2) }, 0.05, false},
		"a sine":                {func(i, _ int) float64 { return 1000 + 250*math.Sin(float64(i)/6) }, 0.05, false},
		"a step":                {func(i, n int) float64 { return 1000 - 400*float64(2*i/n) }, 0.05, false},
	} {
		right := 0
		for range 200 {
			n := 60 + random.IntN(240)
			values := make([]float64, n)
			for i := range values {
				values[i] = c.at(i, n) * (1 + c.noise*random.NormFloat64())
			}
			if v := steady.Judge(steady.Series{Name: "IOPS", Values: values}); (v.State != steady.Unsteady) == c.steady {
				right++
			}
		}
		if right < 190 {
			t.Errorf("%s: %d of 200 judged right", name, right)
		}
	}
}
