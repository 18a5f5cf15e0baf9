package fake

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// imagined is what a VM that runs does on average.
var imagined = map[target.VMMetric]float64{
	target.VMCPUUsage: 0.4, target.VMCPUSteal: 0.01, target.VMMemory: 1 << 30, target.VMReads: 700, target.VMWrites: 300,
	target.VMReadBytes: 700 * 8192, target.VMWritten: 300 * 8192, target.VMReadTime: 0.5e-3, target.VMWriteTime: 0.8e-3,
	target.VMReceived: 20e3, target.VMTransmitted: 60e3,
}

// SampleVMs returns the samples of SampleNodes and numbers of VMs that follow from the number of the call and the VM only.
func (t *Target) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	nodes, err := t.SampleNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var vms []target.VM
	for _, m := range t.machines {
		if m.mark == tag.Mark() && m.cycle != nil && !t.nodesOff[m.vm.NodeID] {
			vms = append(vms, m.vm)
		}
	}
	slices.SortFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	now := time.Now()
	var all []target.VMSample
	for _, vm := range vms {
		wave := 1 + 0.1*math.Sin(float64(t.samples)/5+float64(vm.Ordinal))
		for _, metric := range target.VMMetrics() {
			all = append(all, target.VMSample{
				VM: vm.Name, Group: vm.Group, NodeID: vm.NodeID, Metric: metric, At: now, Value: imagined[metric] * wave, Simulated: true,
			})
		}
	}
	return nodes, all, nil
}
