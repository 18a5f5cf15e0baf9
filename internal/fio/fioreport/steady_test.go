package fioreport

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Deviation and slope of series that were worked out by hand.
func TestSteadyStateOfSeries(t *testing.T) {
	criterion := func(measure string, slope, percent bool, limit float64) fiojob.SteadyState {
		return fiojob.SteadyState{Measure: measure, Slope: slope, Percent: percent, Limit: limit, Duration: 4 * time.Second}
	}
	for _, c := range []struct {
		criterion fiojob.SteadyState
		values    []float64
		attained  bool
		figure    string
	}{
		// Mean 102.5, the farthest is 4.5 away from it: 4.390244 %.
		{criterion("iops", false, true, 5), []float64{100, 98, 105, 107}, true, "4.500000 4.390244%"},
		{criterion("iops", false, true, 4.3), []float64{100, 98, 105, 107}, false, "4.500000 4.390244%"},
		{criterion("iops", false, false, 4.5), []float64{100, 98, 105, 107}, false, "4.500000 4.500000"},
		{criterion("iops", false, false, 4.6), []float64{100, 98, 105, 107}, true, "4.500000 4.500000"},
		// Through (0,10) (1,12) (2,14) (3,16) goes a line of slope 2, of mean 13: 15.384615 %.
		{criterion("bw", true, false, 2.1), []float64{10, 12, 14, 16}, true, "2.000000 2.000000"},
		{criterion("bw", true, true, 15), []float64{10, 12, 14, 16}, false, "2.000000 15.384615%"},
		// Falling: Σ(x−1.5)(v−mean) = −1.5·2 −0.5·0 +0.5·0 +1.5·(−2) = −6, over Σ(x−1.5)² = 5: −1.2.
		{criterion("lat", true, false, 1.3), []float64{12, 10, 10, 8}, true, "-1.200000 -1.200000"},
		{criterion("lat", true, false, 1.1), []float64{12, 10, 10, 8}, false, "-1.200000 -1.200000"},
		// Three values do not fill the window of four.
		{criterion("iops", false, true, 5), []float64{100, 100, 100}, false, "0.000000 0.000000%"},
		// Only the last four count: the slow start is out of the window.
		{criterion("iops", false, true, 1), []float64{1, 50, 100, 100, 100, 100}, true, "0.000000 0.000000%"},
		{criterion("iops", false, true, 1), []float64{0, 0, 0, 0}, false, "0.000000 0.000000%"},
	} {
		s := Steady{Criterion: c.criterion}
		for _, v := range c.values {
			s.Add(SteadyValue{IOPS: v, Bandwidth: v, Latency: v})
		}
		raw := s
		raw.Criterion.Percent = false
		if got := raw.figure(6) + " " + s.figure(6); s.Attained != c.attained || got != c.figure {
			t.Errorf("%v of %v: attained %v, %s; want %v, %s", c.criterion, c.values, s.Attained, got, c.attained, c.figure)
		}
	}
}

// The slope of any line with noise that adds up to nothing around it is that of the line, wherever it lies.
func TestSlopeOfLines(t *testing.T) {
	for _, slope := range []float64{-3, 0, 0.25, 1e6} {
		for n := 2; n < 40; n++ {
			values := make([]float64, n)
			for i := range values {
				values[i] = 1e4 + slope*float64(i)
			}
			if got := slopeOf(values); math.Abs(got-slope) > 1e-6*math.Max(1, math.Abs(slope)) {
				t.Errorf("slope of %d values on a line of slope %g is %g", n, slope, got)
			}
		}
	}
	if slopeOf([]float64{5}) != 0 || slopeOf(nil) != 0 {
		t.Error("one value has a slope")
	}
}

// The document lists all that the window has room for, and its means are of that, as fio prints them.
func TestSteadyDocument(t *testing.T) {
	s := Steady{Criterion: fiojob.SteadyState{Measure: "iops", Percent: true, Limit: 5, Duration: 4 * time.Second}}
	s.Add(SteadyValue{IOPS: 100, Bandwidth: 409600})
	s.Add(SteadyValue{IOPS: 102, Bandwidth: 417792})
	data := s.json().Data
	if data.IOPSMean != 50 || data.BandwidthMean != 206848 || !slices.Equal(data.IOPS, []uint64{100, 102, 0, 0}) ||
		!slices.Equal(data.Bandwidth, []uint64{409600, 417792, 0, 0}) {
		t.Errorf("%+v", data)
	}
	if len(s.Window) != 2 {
		t.Errorf("the window has %d values", len(s.Window))
	}
}
