package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// TestProfileKeepsItsSum: however the time is cut, nothing is lost and memory stays bounded.
func TestProfileKeepsItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p profile
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
		d := NewDigest()
		for s, ms := range c.stalled {
			d.Add(&interval.Interval{Workload: "w", VM: "v", Instance: 1, Sequence: int64(s), StartNanos: int64(s) * 1e9, LengthNanos: 1e9, StalledNanos: ms * 1e6})
		}
		if s := d.Streams()[0]; s.StallMaxNanos != c.longest*1e6 || s.StallMaxAt != c.at*1e9 {
			t.Errorf("%s: longest %d ms at %d s, want %d ms at %d s", name, s.StallMaxNanos/1e6, s.StallMaxAt/1e9, c.longest, c.at)
		}
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
			one := course{"IOPS", values, 1}
			if text, _ := one.unsteadiness(result.Window{ToNanos: int64(n) * 1e9}); (text == "") == c.steady {
				right++
			}
		}
		if right < 190 {
			t.Errorf("%s: %d of 200 judged right", name, right)
		}
	}
}
