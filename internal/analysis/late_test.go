package analysis_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// A program that prints its latencies when it ends has them in its last interval: they are not those of a window, and operations
// of a window whose latencies are not known are counted.
func TestLateLatencies(t *testing.T) {
	late := &stat.Histogram{}
	late.RecordN(1e6, 600)
	var times analysis.Times
	for i := range 60 {
		iv := interval.Interval{Workload: "W", StartNanos: int64(i) * 1e9, LengthNanos: 1e9, Final: i == 59}
		iv.Directions[0].Operations = 10
		if iv.Final {
			iv.Directions[0].Service = late
		}
		times.Add(&iv)
	}
	if !times.Empty() || times.Untimed != 600 || times.Service().Count() != 0 {
		t.Errorf("%d untimed of 600, %d latencies", times.Untimed, times.Service().Count())
	}
	own := &stat.Histogram{}
	own.RecordN(2e6, 10)
	iv := interval.Interval{Workload: "W", LengthNanos: 1e9}
	iv.Directions[0] = interval.Traffic{Operations: 10, Service: own}
	times.Add(&iv)
	if s := times.Statistics("service"); s.Untimed != 600 || s.Count != 10 {
		t.Errorf("beside a load with latencies: %+v", s)
	}
}
