package evaluate

import (
	"time"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// How readings of nodes and VMs are recorded, for a later evaluation.

// NodeSamples turns one reading of cluster metrics into samples of the bundle. atNanos is when it was read, on the
// run's axis; the clocks of nodes are not trusted.
func NodeSamples(readings []target.NodeSample, atNanos int64) []result.Sample {
	samples := make([]result.Sample, len(readings))
	for i, r := range readings {
		labels := map[string]string{"node": r.NodeID, "metric": r.Metric}
		if r.Simulated {
			labels["simulated"] = "true"
		}
		samples[i] = result.Sample{AtNanos: atNanos, Name: metric.NodeValue, Labels: labels, Value: r.Value}
	}
	return samples
}

// VMSamples turns one reading of VMs into samples of a bundle whose axis begins at zero.
func VMSamples(readings []target.VMSample, zero time.Time) []result.Sample {
	samples := make([]result.Sample, len(readings))
	for i, r := range readings {
		labels := map[string]string{"vm": r.VM, "instance": r.VM, "vm_group": r.Group, "node": r.NodeID}
		if r.Simulated {
			labels["simulated"] = "true"
		}
		samples[i] = result.Sample{
			AtNanos: max(0, r.At.Sub(zero).Nanoseconds()), Name: metric.HypervisorVM + string(r.Metric), Labels: labels, Value: r.Value,
		}
	}
	return samples
}
