package fake

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// SampleNodes returns numbers that depend only on the number of the call, the node and its running VMs, so that two runs
// see the same.
func (c *cluster) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.samples++
	running := map[string]float64{}
	for _, m := range c.machines {
		if m.cycle != nil {
			running[m.vm.NodeID]++
		}
	}
	now := time.Now()
	var all []target.NodeSample
	for i, n := range c.nodes {
		if c.nodesOff[n.ID] {
			continue // a powered-off node does not answer
		}
		wave := 1 + 0.1*math.Sin(float64(c.samples)/5+float64(i))
		add := func(metric, unit string, idle, perVM float64) {
			all = append(all, target.NodeSample{
				NodeID: n.ID, Metric: metric, At: now, Value: (idle + perVM*running[n.ID]) * wave, Simulated: true, UnitSymbol: unit,
			})
		}
		add("CpuUsage.Avg.Percent", "%", 2, 0.4)
		add("CpuUsage.Avg.Megahertz", "MHz", 2000, 400)
		add("MemUsage.Avg.Percent", "%", 10, 1)
		add("NetReceived.Avg.KilobytesPerSecond", "KiB/s", 100, 2500)
		add("NetTransmitted.Avg.KilobytesPerSecond", "KiB/s", 100, 2400)
	}
	return all, nil
}

// simulatedMeans is the mean load of a running VM.
var simulatedMeans = map[target.VMMetric]float64{
	target.VMCPUUsage: 0.4, target.VMCPUSteal: 0.01, target.VMMemory: 1 << 30, target.VMReads: 700, target.VMWrites: 300,
	target.VMReadBytes: 700 * 8192, target.VMWritten: 300 * 8192, target.VMReadTime: 0.5e-3, target.VMWriteTime: 0.8e-3,
	target.VMReceived: 20e3, target.VMTransmitted: 60e3,
}

// SampleVMs returns the samples of SampleNodes and numbers of VMs that depend only on the number of the call and the VM.
func (c *cluster) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	nodes, err := c.SampleNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var vms []target.VM
	for _, m := range c.machines {
		if m.mark == tag.Mark() && m.cycle != nil && !c.nodesOff[m.vm.NodeID] {
			vms = append(vms, m.vm)
		}
	}
	slices.SortFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	now := time.Now()
	var all []target.VMSample
	for _, vm := range vms {
		wave := 1 + 0.1*math.Sin(float64(c.samples)/5+float64(vm.Ordinal))
		for _, metric := range target.VMMetrics() {
			all = append(all, target.VMSample{
				VM: vm.Name, Group: vm.Group, NodeID: vm.NodeID, Metric: metric, At: now, Value: simulatedMeans[metric] * wave, Simulated: true,
			})
		}
	}
	return nodes, all, nil
}

// NodeSpace returns the one storage that all nodes share. A node that is off returns an error.
func (c *cluster) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	if ctx.Err() != nil {
		return target.Space{}, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.nodeIsOn(nodeID); err != nil {
		return target.Space{}, err
	}
	return target.Space{Storage: "simulated", Place: "the simulated storage", FreeBytes: c.freeBytes(), TotalBytes: capacityBytes}, nil
}

// Fill simulates writes of others until only this many bytes are free.
func (c *cluster) Fill(leftBytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.foreign += c.freeBytes() - leftBytes
}

// freeBytes counts the full size of disks. The caller holds the lock.
func (c *cluster) freeBytes() int64 {
	free := capacityBytes - c.foreign
	for _, m := range c.machines {
		for _, d := range m.vm.Disks {
			free -= d.SizeBytes
		}
	}
	return max(0, free)
}
