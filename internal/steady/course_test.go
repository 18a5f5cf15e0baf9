package steady

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// TestCourseKeepsItsSum: however the time is cut, nothing is lost and memory stays bounded.
func TestCourseKeepsItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Course
		operations, at := 0.0, rapid.Int64Range(0, 1e12).Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			from := max(0, at+rapid.Int64Range(-2e9, 300e9).Draw(t, "step"))
			iv := interval.Interval{StartNanos: from, LengthNanos: rapid.Int64Range(1, 3e9).Draw(t, "length")}
			iv.Directions[0] = interval.Traffic{Operations: 10, Service: &stat.Histogram{}}
			iv.Directions[0].Service.RecordN(rapid.Uint64Range(1, 1e10).Draw(t, "latency"), 10)
			c.Add(&iv)
			operations += 10
			at = from
		}
		got, times := 0.0, uint64(0)
		for i := range c.buckets {
			got, times = got+c.buckets[i].operations, times+c.buckets[i].times.Count()
		}
		if math.Abs(got-operations) > 1e-6*operations || times != uint64(operations) || len(c.buckets) > courseBuckets {
			t.Fatalf("%d buckets hold %v operations with %d times, want %v in at most %d", len(c.buckets), got, times, operations, courseBuckets)
		}
	})
}

// TestCourse: rates and percentiles are of all VMs together.
func TestCourse(t *testing.T) {
	var c Course
	for second := range int64(10) {
		for vm := range uint64(2) {
			if second == 5 {
				continue
			}
			iv := interval.Interval{StartNanos: second * 1e9, LengthNanos: 1e9}
			iv.Directions[vm] = interval.Traffic{Operations: 1000, Service: &stat.Histogram{}}
			iv.Directions[vm].Service.RecordN(100_000*(vm+1), 985)
			iv.Directions[vm].Service.RecordN(5_000_000*(vm+1), 15)
			c.Add(&iv)
		}
	}
	w := c.Over(500e6, 9500e6, "IOPS")
	if w.FromNanos != 1e9 || c.Width() != 1e9 || len(w.Series) != 3 {
		t.Fatalf("%+v", w)
	}
	for i, want := range []float64{2000, 200e3, 5e6} {
		for j, v := range w.Series[i].Values {
			if gap := j == 4; gap != math.IsNaN(v) || !gap && math.Abs(v/want-1) > 0.02 {
				t.Errorf("%s of second %d: %v, want %v", w.Series[i].Name, j+1, v, want)
			}
		}
	}
	var none *Course
	if w := none.Over(0, 1e9, "IOPS"); len(w.Series[0].Values) != 0 {
		t.Errorf("%+v", w)
	}
}
