package digest

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
)

// TestProfileKeepsItsSum: however the time is cut, nothing is lost and memory stays bounded.
func TestProfileKeepsItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Profile
		sum, at := 0.0, rapid.Int64Range(0, 1e12).Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			from := max(0, at+rapid.Int64Range(-2e9, 300e9).Draw(t, "step"))
			length := rapid.Int64Range(1, 3e9).Draw(t, "length")
			p.add(from, from+length, 10, 1000)
			sum += 10
			at = from
		}
		got, latency := 0.0, 0.0
		for _, b := range p.buckets {
			got, latency = got+b.operations, latency+b.latency
		}
		if math.Abs(got-sum) > 1e-6*sum || math.Abs(latency-100*sum) > 1e-4*sum || len(p.buckets) > profileBuckets {
			t.Fatalf("%d buckets hold %v, want %v in at most %d", len(p.buckets), got, sum, profileBuckets)
		}
	})
}

func TestFit(t *testing.T) {
	line := Fit([]float64{10, 11, 12, 13, 14})
	if line.Mean != 12 || math.Abs(line.Drift-4.0/12) > 1e-12 || !math.IsInf(line.T, 1) {
		t.Errorf("a straight line: %+v", line)
	}
	flat := Fit([]float64{5, 5, 5, 5})
	if flat.Drift != 0 || flat.CV != 0 || flat.T != 0 {
		t.Errorf("a constant: %+v", flat)
	}
	if short := Fit([]float64{1, 2}); !math.IsNaN(short.Mean) {
		t.Errorf("two values: %+v", short)
	}
}

// TestStallsAreJoined: a stop of several seconds is one stall, and short ones in intervals beside each other are not.
func TestStallsAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		stalled []int64 // milliseconds of each second
		longest int64
		at      int64 // second
	}{
		"a stop of 4.84 s":             {[]int64{0, 420, 1000, 1000, 1000, 1000, 420, 0}, 4840, 1},
		"within one second":            {[]int64{0, 840, 0}, 840, 1},
		"from one into the next":       {[]int64{0, 300, 400, 0}, 400, 2},
		"two stops":                    {[]int64{500, 1000, 0, 1000, 1000, 0}, 2000, 3},
		"a stop, and then a short one": {[]int64{1000, 200, 200}, 1200, 0},
	} {
		d := New()
		for s, ms := range c.stalled {
			d.Add(&interval.Interval{Workload: "w", VM: "v", Instance: 1, Sequence: int64(s), StartNanos: int64(s) * 1e9, LengthNanos: 1e9, StalledNanos: ms * 1e6})
		}
		if s := d.Streams()[0]; s.StallMaxNanos != c.longest*1e6 || s.StallMaxAt != c.at*1e9 {
			t.Errorf("%s: longest %d ms at %d s, want %d ms at %d s", name, s.StallMaxNanos/1e6, s.StallMaxAt/1e9, c.longest, c.at)
		}
	}
}
