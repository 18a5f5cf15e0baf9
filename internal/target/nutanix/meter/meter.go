// Package meter reads the utilization of hosts and VMs from the statistics of Prism.
//
//	Hosts, VMs ──▶ one request for each ──▶ values that are newer than those of the last reading ──▶ samples
//
// Prism collects every 20 to 30 s and shows the values up to a minute later. The time of a sample is Prism's. A value that Prism does not
// have is absent: its latency of a VM without operations, for example, is −1, which is not a latency.
package meter

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// Meter reads statistics. Its zero value is ready for use.
type Meter struct {
	mu    sync.Mutex
	given map[string]time.Time // time of the last sample, by object and metric
}

// fresh reports whether a value is newer than the last one of its object, and remembers it.
func (m *Meter) fresh(object, metric string, at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := object + " " + metric
	if !at.After(m.given[key]) {
		return false
	}
	if m.given == nil {
		m.given = map[string]time.Time{}
	}
	m.given[key] = at
	return true
}

// conversion is how a metric follows from a statistic of Prism: its value divided by per.
type conversion struct {
	metric, from string
	per          float64
}

const perMillion = 1e6

// ofHosts are the metrics of hosts.
var ofHosts = []conversion{
	{"CpuUsage.Avg.Percent", "hypervisorCpuUsagePpm", perMillion / 100},
	{"MemUsage.Avg.Percent", "aggregateHypervisorMemoryUsagePpm", perMillion / 100},
	{"NetReceived.Avg.KilobytesPerSecond", ahv.Received, 1024},
	{"NetTransmitted.Avg.KilobytesPerSecond", ahv.Transmitted, 1024},
}

const (
	cpuPercent   = "CpuUsage.Avg.Percent"
	cpuMegahertz = "CpuUsage.Avg.Megahertz"
)

// Host is a host to be read.
type Host struct {
	NodeID     string
	ExtID      string
	CapacityHz float64 // of all its processors; 0: not known
}

// Hosts reads hosts. The latest value of a metric is repeated until Prism has a newer one.
func (m *Meter) Hosts(ctx context.Context, c *ahv.Cluster, hosts []Host) ([]target.NodeSample, error) {
	found := make([][]target.NodeSample, len(hosts))
	err := target.Each(ctx, len(hosts), func(i int) error {
		s, err := c.HostStats(ctx, hosts[i].ExtID)
		if err != nil {
			return err
		}
		for _, conv := range ofHosts {
			p, ok := s[conv.from]
			if !ok || p.Value < 0 {
				continue
			}
			one := target.NodeSample{NodeID: hosts[i].NodeID, Metric: conv.metric, At: p.At, Value: p.Value / conv.per}
			found[i] = append(found[i], one)
			if conv.metric == cpuPercent && hosts[i].CapacityHz > 0 {
				one.Metric, one.Value = cpuMegahertz, one.Value/100*hosts[i].CapacityHz/1e6
				found[i] = append(found[i], one)
			}
		}
		return nil
	})
	var all []target.NodeSample
	for _, samples := range found {
		all = append(all, samples...)
	}
	return all, err
}

// ofVMs are the metrics of VMs. Where their names say Kbps, bandwidths are in kB/s, whose kilobyte is taken as 1,024 bytes, as sources of
// counters do. Where they say Bytes, they are bytes of an interval: ahv makes rates of those.
var ofVMs = []conversion{
	{string(target.VMCPUUsage), "hypervisorCpuUsagePpm", perMillion},
	{string(target.VMCPUSteal), "hypervisorCpuReadyTimePpm", perMillion},
	{string(target.VMReads), "controllerNumReadIops", 1},
	{string(target.VMWrites), "controllerNumWriteIops", 1},
	{string(target.VMReadBytes), "controllerReadIoBandwidthKbps", 1.0 / 1024},
	{string(target.VMWritten), "controllerWriteIoBandwidthKbps", 1.0 / 1024},
	{string(target.VMReadTime), "controllerAvgReadIoLatencyMicros", perMillion},
	{string(target.VMWriteTime), "controllerAvgWriteIoLatencyMicros", perMillion},
	{string(target.VMReceived), ahv.Received, 1},
	{string(target.VMTransmitted), ahv.Transmitted, 1},
}

// operations are the statistics that a latency needs: without operations it is none.
var operations = map[string]string{
	"controllerAvgReadIoLatencyMicros": "controllerNumReadIops", "controllerAvgWriteIoLatencyMicros": "controllerNumWriteIops",
}

// VM is a VM to be read, which is on.
type VM struct {
	Value    target.VM
	RAMBytes int64
}

// VMs reads VMs: each value of Prism once.
func (m *Meter) VMs(ctx context.Context, c *ahv.Cluster, vms []VM) ([]target.VMSample, error) {
	found := make([][]target.VMSample, len(vms))
	err := target.Each(ctx, len(vms), func(i int) error {
		s, err := c.VMStats(ctx, vms[i].Value.ID)
		if err != nil {
			return err
		}
		found[i] = m.samples(vms[i], s)
		return nil
	})
	var all []target.VMSample
	for _, samples := range found {
		all = append(all, samples...)
	}
	return all, err
}

func (m *Meter) samples(vm VM, s ahv.Stats) []target.VMSample {
	var samples []target.VMSample
	add := func(metric target.VMMetric, p ahv.Point, value float64) {
		if value >= 0 && m.fresh(vm.Value.ID, string(metric), p.At) {
			samples = append(samples, target.VMSample{
				VM: vm.Value.Name, Group: vm.Value.Group, NodeID: vm.Value.NodeID, Metric: metric, At: p.At, Value: value,
			})
		}
	}
	for _, conv := range ofVMs {
		p, ok := s[conv.from]
		if needs := operations[conv.from]; !ok || needs != "" && s[needs].Value <= 0 {
			continue
		}
		add(target.VMMetric(conv.metric), p, p.Value/conv.per)
	}
	if p, ok := s["hypervisorMemoryUsagePpm"]; ok && vm.RAMBytes > 0 {
		add(target.VMMemory, p, p.Value/perMillion*float64(vm.RAMBytes))
	}
	return samples
}
