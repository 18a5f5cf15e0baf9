package meter_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session/meter"
	"github.com/braggdev/bragg/internal/target"
)

// zero is when the runs of these tests began.
var zero = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// axisAt is the axis at that time of a run.
func axisAt(nanos int64) meter.Axis {
	return meter.Axis{Now: zero.Add(time.Duration(nanos)), Nanos: nanos}
}

// Samples are where the platform measured, not where they were read.
func TestSamplesArePlacedByTheirAge(t *testing.T) {
	const now = int64(60e9)
	ofNode := func(age time.Duration, axis meter.Axis) []result.Sample {
		return meter.NodeSamples([]target.NodeSample{{NodeID: "n1", Metric: "CpuUsage.Avg.Percent", At: axis.Now.Add(-age), Value: 7}}, axis)
	}
	ofVM := func(age time.Duration, axis meter.Axis) []result.Sample {
		return meter.VMSamples([]target.VMSample{{VM: "OLTP-0001", Metric: target.VMReads, At: axis.Now.Add(-age), Value: 7}}, axis)
	}
	later := meter.Axis{Now: zero.Add(5 * time.Hour), Nanos: now} // the clock was set
	for _, c := range []struct {
		name string
		age  time.Duration
		axis meter.Axis
		want int64 // -1: none
	}{
		{"new", 0, axisAt(now), 60e9},
		{"an average that ended before", 16 * time.Second, axisAt(now), 44e9},
		{"at the start", time.Minute, axisAt(now), 0},
		{"before the run", time.Minute + 1, axisAt(now), -1},
		{"of a clock that is ahead", -time.Second, axisAt(now), 60e9},
		{"after the clock was set", 16 * time.Second, later, 44e9},
		{"without a time", later.Now.Sub(time.Time{}), later, -1},
	} {
		for _, samples := range [][]result.Sample{ofNode(c.age, c.axis), ofVM(c.age, c.axis)} {
			switch {
			case c.want < 0 && len(samples) > 0:
				t.Errorf("%s: %+v", c.name, samples)
			case c.want >= 0 && (len(samples) != 1 || samples[0].AtNanos != c.want || samples[0].Value != 7):
				t.Errorf("%s: %+v, want it at %d", c.name, samples, c.want)
			}
		}
	}
}
