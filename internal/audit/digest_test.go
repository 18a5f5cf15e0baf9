package audit

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/extent"
)

// TestProfileKeepsItsSum: however the time is cut, nothing is lost and memory stays bounded.
func TestProfileKeepsItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p profile
		sum, at := 0.0, rapid.Int64Range(0, 1e12).Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			from := max(0, at+rapid.Int64Range(-2e9, 300e9).Draw(t, "step"))
			length := rapid.Int64Range(1, 3e9).Draw(t, "length")
			p.add(from, from+length, 10)
			sum += 10
			at = from
		}
		got := 0.0
		for _, n := range p.buckets {
			got += n
		}
		if math.Abs(got-sum) > 1e-6*sum || len(p.buckets) > profileBuckets || len(p.seen) != len(p.buckets) {
			t.Fatalf("%d buckets hold %v, want %v in at most %d", len(p.buckets), got, sum, profileBuckets)
		}
	})
}

func TestFit(t *testing.T) {
	line := fit([]float64{10, 11, 12, 13, 14})
	if line.mean != 12 || math.Abs(line.drift-4.0/12) > 1e-12 || !math.IsInf(line.t, 1) {
		t.Errorf("a straight line: %+v", line)
	}
	flat := fit([]float64{5, 5, 5, 5})
	if flat.drift != 0 || flat.cv != 0 || flat.t != 0 {
		t.Errorf("a constant: %+v", flat)
	}
	if short := fit([]float64{1, 2}); !math.IsNaN(short.mean) {
		t.Errorf("two values: %+v", short)
	}
}

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
