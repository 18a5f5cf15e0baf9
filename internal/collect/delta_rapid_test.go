package collect_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/collect"
)

// TestCountersAgainstTruth: whatever a counter of 32 or 64 bits does, totals, rates and means are those of what was counted; across a restart there is no
// rate, and totals miss only what was counted between the last reading and the restart.
func TestCountersAgainstTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wide := rapid.Bool().Draw(t, "64 bits")
		limit, most := uint64(math.MaxUint32), uint64(1<<29)
		if wide {
			limit, most = math.MaxUint64, 1<<40
		}
		wrap := func(v uint64) uint64 { return v & limit }
		// The counter begins anywhere. A restart differs from a wrap by where it was: outside the last quarter of its range, or by a counter beside it.
		value := wrap(rapid.Uint64().Draw(t, "begin"))
		base, at := uint64(0), time.Unix(1000, 0)
		counters := collect.NewCounters()
		counters.Begin()
		counters.Add("v", map[string]uint64{"time": value, "ops": base}, at)
		start, ok := counters.Total(collect.Key("v", "time"))
		if !ok || start < 0 {
			t.Fatalf("the first total is %v, %v", start, ok)
		}
		total := 0.0
		for range rapid.IntRange(1, 20).Draw(t, "readings") {
			seconds := rapid.IntRange(0, 30).Draw(t, "seconds")
			at = at.Add(time.Duration(seconds) * time.Second)
			counters.Begin()
			if seconds == 0 { // the system shows the same reading again
				counters.Add("v", map[string]uint64{"time": value, "ops": base}, at)
				continue
			}
			counted, operations := rapid.Uint64Range(0, most).Draw(t, "counted"), rapid.Uint64Range(0, 5000).Draw(t, "operations")
			clear := float64(value) < 0.75*float64(limit) && (value < 3<<30 || value > math.MaxUint32)
			restarted := (value > counted && clear || base > operations) && rapid.Bool().Draw(t, "restart")
			if restarted {
				value, base = counted, operations
			} else {
				value, base = wrap(value+counted), base+operations
			}
			total += float64(counted)
			counters.Add("v", map[string]uint64{"time": value, "ops": base}, at)
			got, _ := counters.Total(collect.Key("v", "time"))
			if math.Abs(got-start-total) > 1e-6*math.Max(total, 1) {
				t.Fatalf("the total rose by %v, want %v", got-start, total)
			}
			rate, hasRate := counters.Rate(collect.Key("v", "time"))
			if hasRate == restarted || hasRate && rate != float64(counted)/float64(seconds) {
				t.Fatalf("rate %v, %v of %d in %d s, restarted %v", rate, hasRate, counted, seconds, restarted)
			}
			mean, hasMean := counters.Mean(collect.Key("v", "time"), collect.Key("v", "ops"), collect.LatencyOperationsMin)
			enough := operations >= collect.LatencyOperationsMin && !restarted
			if hasMean && (!enough || mean != float64(counted)/float64(operations)) || enough && !hasMean {
				t.Fatalf("mean %v, %v of %d by %d, restarted %v", mean, hasMean, counted, operations, restarted)
			}
		}
	})
}
