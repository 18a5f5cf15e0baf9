package meter

import (
	"time"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// Axis is the axis of a run at the moment of a reading. Samples are placed by their age: the clock of this program may have been
// set since the run began, and a platform that averages over half a minute gives values that end before they are read.
type Axis struct {
	Now   time.Time // of the reading
	Nanos int64     // the same moment on the axis
}

// place returns where at is on the axis. A time in the future, of a clock that is a little ahead, is now.
func (a Axis) place(at time.Time) int64 {
	return a.Nanos - max(0, a.Now.Sub(at).Nanoseconds())
}

// NodeSamples turns one reading of cluster metrics into samples of the bundle, without those from before the run.
func NodeSamples(readings []target.NodeSample, axis Axis) []result.Sample {
	var samples []result.Sample
	for _, r := range readings {
		if at := axis.place(r.At); at >= 0 {
			labels := marked(map[string]string{"node": r.NodeID, "metric": r.Metric}, r.Simulated)
			samples = append(samples, result.Sample{AtNanos: at, Name: metric.NodeValue, Labels: labels, Value: r.Value})
		}
	}
	return samples
}

// VMSamples turns one reading of VMs into samples of the bundle, without those from before the run.
func VMSamples(readings []target.VMSample, axis Axis) []result.Sample {
	var samples []result.Sample
	for _, r := range readings {
		if at := axis.place(r.At); at >= 0 {
			labels := marked(map[string]string{"vm": r.VM, "instance": r.VM, "vm_group": r.Group, "node": r.NodeID}, r.Simulated)
			samples = append(samples, result.Sample{AtNanos: at, Name: metric.HypervisorVM + string(r.Metric), Labels: labels, Value: r.Value})
		}
	}
	return samples
}

func marked(labels map[string]string, simulated bool) map[string]string {
	if simulated {
		labels["simulated"] = "true"
	}
	return labels
}
