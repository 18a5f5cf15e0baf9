package target

import (
	"context"
	"slices"
	"time"
)

// VMMetric names a hypervisor's metric of one VM, in the base unit at the end of the name. All are averages over the time
// since the previous reading, except memory, which is the current value.
type VMMetric string

const (
	// VMCPUUsage is CPU time per time and vCPU: at 1 all vCPUs are busy. It may exceed 1, because it includes the
	// emulator's own use.
	VMCPUUsage VMMetric = "cpu_usage_ratio"
	// VMCPUSteal is the time in which vCPUs were runnable and waited for a CPU of the host, per time and vCPU.
	VMCPUSteal VMMetric = "cpu_steal_ratio"
	// VMCPUThrottled is the share of scheduling periods in which the VM had used up its CPU limit and was stopped until the
	// next one: 0 to 1. Only targets that limit VMs in that way count it, such as pods of Kubernetes.
	VMCPUThrottled VMMetric = "cpu_throttled_ratio"
	// VMMemory is the memory of the host that the VM uses.
	VMMemory VMMetric = "memory_resident_bytes"

	VMReads     VMMetric = "disk_reads_per_second" // of all disks of the VM; the same applies to the next five
	VMWrites    VMMetric = "disk_writes_per_second"
	VMReadBytes VMMetric = "disk_read_bytes_per_second"
	VMWritten   VMMetric = "disk_written_bytes_per_second"
	// VMReadTime and VMWriteTime are means over completed requests. Without any, the metric has no value.
	VMReadTime  VMMetric = "disk_read_time_seconds"
	VMWriteTime VMMetric = "disk_write_time_seconds"

	VMReceived    VMMetric = "network_receive_bytes_per_second" // of all its network cards
	VMTransmitted VMMetric = "network_transmit_bytes_per_second"
)

// VMMetrics lists all metrics in the order of reports.
func VMMetrics() []VMMetric {
	return []VMMetric{
		VMCPUUsage, VMCPUSteal, VMCPUThrottled, VMMemory, VMReads, VMWrites, VMReadBytes, VMWritten, VMReadTime, VMWriteTime, VMReceived, VMTransmitted,
	}
}

// VMSample is one reading of a VM's use as its hypervisor counts it, independent of the guest.
type VMSample struct {
	VM        string    `json:"vm"` // name
	Group     string    `json:"group"`
	NodeID    string    `json:"node_id"` // its node
	Metric    VMMetric  `json:"metric"`
	At        time.Time `json:"at"` // like At of a NodeSample
	Value     float64   `json:"value"`
	Simulated bool      `json:"simulated,omitempty"`
}

// VMMeter is a NodeMeter that samples VMs in the same poll: SampleVMs returns what SampleNodes would, plus samples of the
// tagged VMs. Unknown values are missing, never zero: there are no samples of a powered-off VM, of a VM on a node that does
// not answer, and in the first poll after a VM appeared or its counters restarted (it was started or moved). A metric that
// the target does not count is missing too. No sample is returned twice.
type VMMeter interface {
	SampleVMs(ctx context.Context, tag Tag) ([]NodeSample, []VMSample, error)
}

// Meters returns the meters that t has and that read something there; nil: none. A target that reads VMs alone has both.
func Meters(t Target) (nodes NodeMeter, vms VMMeter) {
	have := Capabilities(t)
	if slices.Contains(have, CapVMMeter) {
		vms, _ = t.(VMMeter)
	}
	if vms != nil || slices.Contains(have, CapNodeMeter) {
		nodes, _ = t.(NodeMeter)
	}
	return nodes, vms
}
