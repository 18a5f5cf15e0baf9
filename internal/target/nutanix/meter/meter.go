// Package meter reads the utilization of hosts and VMs from the statistics of Prism.
//
//	Hosts, VMs ──▶ one request for each ──▶ values that are newer than those of the last reading ──▶ samples
//
// Prism collects every 20 to 30 s and shows the values up to a minute later. The time of a sample is the end of its interval by the clock of this
// program: that of Prism is known from the answers, as it may be off. A value that Prism does not have is absent: its latency of a VM
// without operations, for example, is −1, which is not a latency.
package meter

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Meter reads statistics. Its zero value is ready for use.
type Meter struct {
	mu    sync.Mutex
	given map[string]stamp // of the last sample, by object and metric
}

// stamp is the time of a sample by the clock of Prism, and by that of this program.
type stamp struct{ prism, here time.Time }

// clockError is that of what is known of Prism's clock.
const clockError = 2 * time.Second

// fresh reports whether a value is newer than the last one of its object, remembers it, and returns its time by the clock of this program. One
// that seems older is newer too if Prism's clock was set back, so that the last one is in the future.
func (m *Meter) fresh(c *prism.Client, object, metric string, at time.Time) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := object + " " + metric
	last := m.given[key]
	if !at.After(last.prism) && !last.prism.After(c.Now().Add(clockError)) {
		return time.Time{}, false
	}
	if m.given == nil {
		m.given = map[string]stamp{}
	}
	here := c.Here(at)
	if !here.After(last.here) { // what is known of the clock became better meanwhile
		here = last.here.Add(time.Millisecond)
	}
	m.given[key] = stamp{at, here}
	return here, true
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

// Hosts reads hosts: each value of Prism once.
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
			at, fresh := m.fresh(c.Prism, hosts[i].ExtID, conv.metric, p.At)
			if !fresh {
				continue
			}
			one := target.NodeSample{NodeID: hosts[i].NodeID, Metric: conv.metric, At: at, Value: p.Value / conv.per}
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
		found[i] = m.samples(c, vms[i], s)
		return nil
	})
	var all []target.VMSample
	for _, samples := range found {
		all = append(all, samples...)
	}
	return all, err
}

func (m *Meter) samples(c *ahv.Cluster, vm VM, s ahv.Stats) []target.VMSample {
	var samples []target.VMSample
	add := func(metric target.VMMetric, p ahv.Point, value float64) {
		if value < 0 {
			return
		}
		if at, fresh := m.fresh(c.Prism, vm.Value.ID, string(metric), p.At); fresh {
			samples = append(samples, target.VMSample{
				VM: vm.Value.Name, Group: vm.Value.Group, NodeID: vm.Value.NodeID, Metric: metric, At: at, Value: value,
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
