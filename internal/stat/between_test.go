package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// TestRanksOfMedian are in every table of nonparametric confidence intervals.
func TestRanksOfMedian(t *testing.T) {
	for n, want := range map[uint64][2]uint64{5: {0, 6}, 6: {1, 6}, 10: {2, 9}, 20: {6, 15}, 50: {18, 33}, 100: {40, 61}} {
		if from, to := stat.QuantileRanks(n, 0.5); from != want[0] || to != want[1] {
			t.Errorf("of %d: %d to %d, want %v", n, from, to, want)
		}
	}
	// ln(0.025)/ln(0.999) = 3687 operations bound p99.9 from above.
	if _, to := stat.QuantileRanks(3687, 0.999); to != 3688 {
		t.Errorf("%d", to)
	}
	if _, to := stat.QuantileRanks(3688, 0.999); to != 3688 {
		t.Errorf("%d", to)
	}
}

func TestRanksCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 400_000).Draw(t, "n")
		q := rapid.SampledFrom([]float64{0.5, 0.95, 0.99, 0.999}).Draw(t, "q")
		from, to := stat.QuantileRanks(n, q)
		values := distuv.Binomial{N: float64(n), P: q}
		covered := values.CDF(float64(to)-1) - values.CDF(float64(from)-1)
		if to == n+1 {
			covered = 1 - values.CDF(float64(from)-1)
		}
		if covered < stat.Confidence-1e-4 {
			t.Fatalf("ranks %d to %d of %d cover quantile %v with %v", from, to, n, q, covered)
		}
	})
}

func TestBetweenByHand(t *testing.T) {
	h := &stat.Histogram{}
	for v := range uint64(100) {
		h.Record(v + 1)
	}
	if low, high := h.Between(0.5, 0, 1); low != 40 || high != 61 {
		t.Errorf("median between %v and %v", low, high)
	}
	if low, high := h.Between(0.99, 0, 1); low != 97 || !math.IsInf(high, 1) {
		t.Errorf("p99 between %v and %v", low, high)
	}
	if low, high := h.Between(0.5, 60, 1); low != 68 || high != 93 {
		t.Errorf("median with 60 unfinished between %v and %v", low, high)
	}
	if low, high := h.Between(0.5, 90, 1); low != 82 || !math.IsInf(high, 1) {
		t.Errorf("median with 90 unfinished between %v and %v", low, high)
	}
	if low, high := h.Between(0.5, 0, 10); low > 30 || high < 80 {
		t.Errorf("median of ten independent operations between %v and %v", low, high)
	}
}

// TestBetweenCoversWhatCorrelates simulates runs of 300 s at 100 operations per second, whose latencies all rise and fall with the
// state of the storage: the bounds of a percentile, widened by the design effect, must contain the true one in about 95 % of runs,
// where bounds for independent operations do not. The last case is a hard one: with a correlation of 0.9, a run has the information
// of 16 independent seconds.
func TestBetweenCoversWhatCorrelates(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, simulations int) {
		const seed = 5
		random := rand.New(rand.NewPCG(seed, 0))
		for _, correlation := range []float64{0, 0.5, 0.9} {
			widened, independent := map[float64]int{}, map[float64]int{}
			for range simulations {
				whole, slices := correlated(random, correlation)
				for _, q := range []float64{0.5, 0.99} {
					truth := 1e6 * math.Exp(0.5*distuv.UnitNormal.Quantile(q))
					counts, hits := make([]float64, len(slices)), make([]float64, len(slices))
					at := uint64(whole.Quantile(q))
					for i, h := range slices {
						counts[i], hits[i] = float64(h.Count()), float64(h.CountAbove(at))
					}
					if low, high := whole.Between(q, 0, stat.DesignEffect(counts, hits)); low <= truth && truth <= high {
						widened[q]++
					}
					if low, high := whole.Between(q, 0, 1); low <= truth && truth <= high {
						independent[q]++
					}
				}
			}
			n := float64(simulations)
			least := min(0.9, 0.94-2*math.Sqrt(0.94*0.06/n)) // less by two standard errors with few rounds; independent ones reach half of it
			for q, covered := range widened {
				t.Logf("quantile %v, correlation of seconds %v: covered in %.1f %%, as if independent in %.1f %%", q, correlation,
					100*float64(covered)/n, 100*float64(independent[q])/n)
				if float64(covered)/n < least {
					t.Errorf("seed %d: too few", seed)
				}
			}
		}
	})
}

// correlated simulates a run: ln latency is the sum of the state (deviation 0.3) and of each operation's own part (0.4), which is normal, of
// deviation 0.5.
func correlated(random *rand.Rand, correlation float64) (whole *stat.Histogram, slices []*stat.Histogram) {
	const seconds, perSecond = 300, 100
	own, ofState := 0.4, 0.3
	if correlation == 0 {
		own, ofState = 0.5, 0
	}
	whole = &stat.Histogram{}
	state := random.NormFloat64()
	for range seconds {
		h := &stat.Histogram{}
		state = correlation*state + math.Sqrt(1-correlation*correlation)*random.NormFloat64()
		for range perSecond {
			h.Record(uint64(1e6 * math.Exp(ofState*state+own*random.NormFloat64())))
		}
		slices = append(slices, h)
		whole.Merge(h)
	}
	return whole, slices
}

func TestDesignEffectWithoutData(t *testing.T) {
	if e := stat.DesignEffect([]float64{10, 10}, []float64{1, 1}); !math.IsNaN(e) {
		t.Errorf("of two slices: %v", e)
	}
	if e := stat.DesignEffect(make([]float64, 20), make([]float64, 20)); !math.IsNaN(e) {
		t.Errorf("of nothing: %v", e)
	}
}

// TestBootstrapErrorOfAutoregression compares with the true standard error of the mean of an autoregression of order one.
func TestBootstrapErrorOfAutoregression(t *testing.T) {
	testreq.Rounds(t, 100, 300, func(t *testing.T, simulations int) {
		const seed, n = 3, 600
		random := rand.New(rand.NewPCG(seed, 0))
		for _, phi := range []float64{0, 0.5, 0.8, 0.95} {
			truth := 0.0
			for lag := -n + 1; lag < n; lag++ {
				truth += (1 - math.Abs(float64(lag))/n) * math.Pow(phi, math.Abs(float64(lag))) / n
			}
			variance, length := 0.0, 0
			for range simulations {
				points, state := make([]float64, n), random.NormFloat64()
				for i := range points {
					state = phi*state + math.Sqrt(1-phi*phi)*random.NormFloat64()
					points[i] = state
				}
				standardError, _ := stat.BootstrapError(points)
				variance += standardError * standardError / float64(simulations)
				length += stat.BlockLength(points)
			}
			ratio := math.Sqrt(variance / truth)
			t.Logf("autoregression %v: blocks of %d on average, standard error %.3f of the true one", phi, length/simulations, ratio)
			if ratio < 0.75 || ratio > 1.15 {
				t.Errorf("seed %d: off", seed)
			}
		}
		if e, _ := stat.BootstrapError(make([]float64, 5)); !math.IsNaN(e) {
			t.Error("five points have no standard error")
		}
		if e, _ := stat.BootstrapError(make([]float64, 50)); e != 0 {
			t.Errorf("constant points: %v", e)
		}
	})
}
