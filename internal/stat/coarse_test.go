package stat_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/stat"
)

// TestCoarse: quantiles of many histograms together are within 2 % of those of the merged one.
func TestCoarse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts [2]stat.Coarse
		var all stat.Histogram
		for i := range rapid.IntRange(0, 6).Draw(t, "histograms") {
			var h stat.Histogram
			for range rapid.IntRange(0, 60).Draw(t, "values") {
				h.RecordN(rapid.Uint64Range(1, 1<<40).Draw(t, "value"), rapid.Uint64Range(1, 9).Draw(t, "n"))
			}
			parts[i%2].Add(&h)
			all.Merge(&h)
		}
		parts[0].Merge(&parts[1])
		if parts[0].Count() != all.Count() {
			t.Fatalf("%d values, want %d", parts[0].Count(), all.Count())
		}
		for _, q := range []float64{0.5, 0.99} {
			got, want := parts[0].Quantile(q), all.Quantile(q)
			if all.Count() < stat.PercentileNeeds(q) {
				want = math.NaN()
			}
			if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 0.025*want+2 {
				t.Fatalf("quantile %v of %d: %v, want %v", q, all.Count(), got, want)
			}
		}
	})
}
