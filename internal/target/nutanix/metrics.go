package nutanix

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/meter"
)

// metrics are the statistics of hosts and VMs.
type metrics struct {
	cluster *cluster
	meter   meter.Meter
}

var _ target.VMMeter = (*metrics)(nil)

// SampleNodes reads the utilization of all hosts that run.
func (m *metrics) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	nodes, err := m.cluster.fresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics of nodes: %w", err)
	}
	var hosts []meter.Host
	for _, n := range nodes {
		if n.host.Trouble() != "" {
			continue
		}
		capacity := float64(n.host.CapacityHz)
		if capacity == 0 {
			capacity = float64(n.host.FrequencyHz) * float64(n.host.Cores)
		}
		hosts = append(hosts, meter.Host{NodeID: n.id, ExtID: n.host.ExtID, CapacityHz: capacity})
	}
	samples, err := m.meter.Hosts(ctx, m.cluster.ahv, hosts)
	if err != nil {
		return samples, fmt.Errorf("read metrics of nodes: %w", err)
	}
	return samples, nil
}

// SampleVMs also reads the utilization of the VMs with the tag that are on.
func (m *metrics) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	nodes, err := m.SampleNodes(ctx)
	if err != nil {
		return nodes, nil, err
	}
	s, err := m.cluster.survey(ctx)
	if err != nil {
		return nodes, nil, fmt.Errorf("read metrics of VMs: %w", err)
	}
	var vms []meter.VM
	for _, one := range s.owned(tag.Mark()) {
		if one.Power == ahv.On {
			vms = append(vms, meter.VM{Value: one.vm(s.nodes), RAMBytes: one.record.RAMBytes})
		}
	}
	samples, err := m.meter.VMs(ctx, m.cluster.ahv, vms)
	if err != nil {
		return nodes, samples, fmt.Errorf("read metrics of VMs: %w", err)
	}
	return nodes, samples, nil
}
