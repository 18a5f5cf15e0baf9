package fioreport

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
)

// However long a run is, its samples are few, nothing of them is lost, and they end at the same moments as those of a clone
// that began at another time.
func TestSamplesOfLongRunsAreFew(t *testing.T) {
	t.Parallel()
	const period = 500_000_000
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 20).Draw(t, "first") * period
		count := rapid.IntRange(1, 5*samplesMax).Draw(t, "count")
		tallies := [2]Tally{{Period: period}, {Period: period}}
		var operations, bytes uint64
		add := func(to *Tally, end int64) {
			iv := interval.Interval{StartNanos: end - period, LengthNanos: period}
			iv.Directions[0].Operations, iv.Directions[0].Bytes = 7, 7*4096
			operations, bytes = operations+7, bytes+7*4096
			to.Add(&iv, 0)
		}
		for i := range int64(count) {
			add(&tallies[0], (i+1)*period)
		}
		for i := range int64(rapid.IntRange(1, 3000).Draw(t, "other")) {
			add(&tallies[1], first+(i+1)*period)
		}
		var sum Tally
		sum.Merge(&tallies[0], period)
		sum.Merge(&tallies[1], period)
		var gotOperations, gotBytes float64
		long := resolution(sum.samples, period)
		for i, s := range sum.samples {
			gotOperations += s.operations[0]
			gotBytes += s.bytes[0]
			if i > 0 && (s.end-1)/long == (sum.samples[i-1].end-1)/long {
				t.Fatalf("samples %d and %d are of one period of %d ns", i-1, i, long)
			}
			if s.length > long {
				t.Fatalf("sample %d is %d ns long, the others %d", i, s.length, long)
			}
		}
		if gotOperations != float64(operations) || gotBytes != float64(bytes) || len(tallies[0].samples) > samplesMax {
			t.Fatalf("%v of %d operations, %v of %d bytes in %d samples", gotOperations, operations, gotBytes, bytes, len(tallies[0].samples))
		}
		_, rate := sum.spreads(0, period)
		if rate.Min < 13.9 || rate.Max > 28.1 {
			t.Fatalf("rates from %v to %v, want 14 a second of each clone", rate.Min, rate.Max)
		}
	})
}
