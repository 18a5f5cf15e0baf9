package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	ourstat "github.com/braggdev/bragg/internal/stat"
)

// TestPercentileBounds: operations of seconds that are alike have narrow bounds, those of seconds that differ wide ones, and too few
// seconds none.
func TestPercentileBounds(t *testing.T) {
	bounds := func(seconds int, slow float64, response bool) (*result.PercentileBounds, float64) {
		const seed = 4
		random := rand.New(rand.NewPCG(seed, 0))
		end := int64(seconds) * 1e9
		l := analysis.Latency{Windows: []result.Window{{ToNanos: end}}, ToNanos: end, BinNanos: 1e9}
		for s := range seconds {
			h := &ourstat.Histogram{}
			factor := 1.0
			if s%10 == 0 {
				factor = slow
			}
			for range 1000 {
				h.Record(uint64(1e6 * factor * (1 + random.ExpFloat64())))
			}
			iv := &interval.Interval{VM: "a", StartNanos: int64(s) * 1e9, LengthNanos: 1e9}
			iv.Directions[interval.Read] = interval.Traffic{Operations: 1000, Service: h}
			if response {
				iv.Directions[interval.Read].Response = h.Clone()
			}
			l.Add(iv)
		}
		times := &l.Of("")[0]
		kind := "service"
		if response {
			kind = "response"
		}
		return l.Bounds(kind, times, 0, end), float64(times.Statistics(kind).P99)
	}
	width := func(b [2]result.Number, of float64) float64 { return float64(b[1]-b[0]) / of }
	for _, response := range []bool{false, true} {
		alike, p99 := bounds(100, 1, response)
		if alike == nil || float64(alike.P99[0]) > p99 || float64(alike.P99[1]) < p99 || width(alike.P99, p99) > 0.06 {
			t.Errorf("seconds that are alike: p99 %v, %+v", p99, alike)
		}
		differ, p99 := bounds(100, 8, response)
		if differ == nil || !(width(differ.P99, p99) > 0.1) || float64(differ.P99[0]) > p99 {
			t.Errorf("seconds that differ: p99 %v, %+v", p99, differ)
		}
	}
	if few, _ := bounds(9, 1, false); few != nil {
		t.Errorf("nine seconds: %+v", few)
	}
	var perVM analysis.Latency
	if b := perVM.Bounds("service", &analysis.Times{}, 0, math.MaxInt64); b != nil {
		t.Errorf("without stretches of time: %+v", b)
	}
}

// A rate that stands still for most of the time has wide bounds, but none below zero.
func TestMeanBoundsOfAHungRate(t *testing.T) {
	var points result.Points
	for i := range 52 {
		value := 0.0
		if i < 12 {
			value = 140
		}
		points = append(points, result.Point{Seconds: float64(i), Value: value})
	}
	if b := analysis.MeanBounds(points, 0, 52e9); b == nil || b[0] != 0 || b[1] < 32.3 {
		t.Errorf("bounds %v of a mean of 32.3", b)
	}
}
