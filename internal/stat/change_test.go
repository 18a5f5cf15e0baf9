package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// history simulates runs with a spread of 2.5 % from run to run, whose level is multiplied by factor from index at on. One in twenty is
// an outlier with four times the spread, if outliers are wanted.
func history(random *rand.Rand, n, at int, factor float64, outliers bool) []float64 {
	var list []float64
	for i := range n {
		spread := 0.025
		if outliers && random.IntN(20) == 0 {
			spread *= 4
		}
		v := 1000 * math.Exp(spread*random.NormFloat64())
		if i >= at {
			v *= factor
		}
		list = append(list, v)
	}
	return list
}

// TestStableHistories: at most 5 % of all histories without a change have one.
func TestStableHistories(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, histories int) {
		const seed = 17
		for _, n := range []int{8, 12, 20, 40} {
			for _, outliers := range []bool{false, true} {
				random := rand.New(rand.NewPCG(seed, 0))
				changed := 0
				for range histories {
					if len(stat.Changes(history(random, n, n, 1, outliers))) > 0 {
						changed++
					}
				}
				t.Logf("%d runs, outliers %t: %d of %d changed", n, outliers, changed, histories)
				if changed > histories*5/100 {
					t.Errorf("seed %d: too many", seed)
				}
			}
		}
	})
}

// TestInjectedChange: a slowdown by 15 % is found within two runs of where it happened in at least 95 % of histories, also when only
// the last two of twelve runs have it.
func TestInjectedChange(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, histories int) {
		const seed = 18
		for _, c := range []struct{ n, at int }{{20, 10}, {20, 15}, {12, 10}, {30, 5}} {
			random := rand.New(rand.NewPCG(seed, 0))
			found := 0
			for range histories {
				changes := stat.Changes(history(random, c.n, c.at, 0.85, false))
				if slices.ContainsFunc(changes, func(at int) bool { return at >= c.at-2 && at <= c.at+2 }) {
					found++
				}
			}
			t.Logf("%d runs, change at %d: found in %d of %d", c.n, c.at, found, histories)
			if found < histories*95/100 {
				t.Errorf("seed %d: too few", seed)
			}
		}
	})
}

func TestChangesByHand(t *testing.T) {
	up := []float64{100, 101, 99, 100, 102, 100, 150, 151, 149, 150, 152, 150, 90, 91, 89, 90, 92, 90}
	if got := stat.Changes(up); !slices.Equal(got, []int{6, 12}) {
		t.Errorf("%v", got)
	}
	if got := stat.Changes(make([]float64, 3)); got != nil {
		t.Errorf("%v", got)
	}
	same := slices.Repeat([]float64{7}, 20)
	if got := stat.Changes(same); got != nil {
		t.Errorf("of equal values: %v", got)
	}
	if got := stat.Changes(append(same, 7, 7, 7, 7, 9)); got != nil {
		t.Errorf("a single run is not a change: %v", got)
	}
	if mean, low, high := stat.Band([]float64{100, 110, 121}); !near(mean, 110, 1e-9) || !near(high/mean, mean/low, 1e-9) || !near(math.Log(high/mean), 4.302653*math.Log(1.1)*math.Sqrt(4.0/3), 1e-6) {
		t.Errorf("%v, %v, %v", mean, low, high)
	}
	if mean, low, _ := stat.Band([]float64{5}); mean != 5 || !math.IsNaN(low) {
		t.Errorf("%v, %v", mean, low)
	}
}
