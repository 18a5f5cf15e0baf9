package kube

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/meter"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

// metrics are the figures of nodes and pods, from where the user may read them.
type metrics struct {
	cluster *cluster
	pods    *api.Mirror[pod] // in which VMs run
	meter   *meter.Meter     // nil: there are none
	from    string           // for readers
	missing map[target.Capability]string
}

// choose finds out where figures can be read. The counters of kubelets are better than the metrics API, and need a right in the cluster.
func (m *metrics) choose(ctx context.Context) error {
	lacks, err := rights.Check(ctx, m.cluster.client, rights.Metrics())
	if err != nil {
		return err
	}
	switch {
	case lacks.Has(rights.Kubelets):
		m.meter = meter.New(m.cluster.client, meter.Kubelets)
		m.from = "counters of the kubelets (cAdvisor), through the API server; a kubelet refreshes them every 10 to 16 s, and values are averages over that time"
		return nil
	case !lacks.Has("pods"):
		m.absent("the user may neither get nodes/proxy nor list pods.metrics.k8s.io")
	case !meter.OffersMetricsAPI(ctx, m.cluster.client):
		m.absent("the user may not get nodes/proxy, and the cluster has no metrics API")
	default:
		m.meter = meter.New(m.cluster.client, meter.MetricsAPI)
		m.from = "metrics API: CPU and memory only, averages over its window, usually 15 s"
		if !lacks.Has("nodes") {
			m.missing = map[target.Capability]string{target.CapNodeMeter: "the user may not list nodes.metrics.k8s.io"}
			m.from += "; none of nodes: " + m.missing[target.CapNodeMeter]
		}
	}
	return nil
}

func (m *metrics) absent(why string) {
	m.from = "none: " + why + "; bragg kube install --metrics prints the rights"
	m.missing = map[target.Capability]string{target.CapNodeMeter: why, target.CapVMMeter: why}
}

// Missing names the meters that this user does not have here.
func (m *metrics) Missing() map[target.Capability]string { return m.missing }

func (m *metrics) facts() []target.Fact {
	return []target.Fact{{Name: "cluster and VM metrics", Value: m.from}}
}

// SampleNodes returns what is new of nodes that answer.
func (m *metrics) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	nodes, _, err := m.sample(ctx, nil)
	return nodes, err
}

// SampleVMs also returns what is new of the running pods of VMs with the tag.
func (m *metrics) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	vms, err := m.running(ctx, tag.Mark())
	if err != nil {
		return nil, nil, fmt.Errorf("read metrics: %w", err)
	}
	return m.sample(ctx, vms)
}

func (m *metrics) sample(ctx context.Context, vms []meter.VM) ([]target.NodeSample, []target.VMSample, error) {
	if m.meter == nil {
		return nil, nil, fmt.Errorf("read metrics: %s", m.from)
	}
	all, err := m.cluster.nodes(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read metrics: %w", err)
	}
	var nodes []meter.Node
	for _, n := range all {
		if m.cluster.power.dead(ctx, n.config.ID) {
			continue // its kubelet cannot answer
		}
		one := meter.Node{Name: n.config.ID}
		if n.seen != nil {
			one.CPUs, one.Bytes = n.seen.Status.Capacity.Cpu().AsApproximateFloat64(), n.seen.Status.Capacity.Memory().AsApproximateFloat64()
		}
		nodes = append(nodes, one)
	}
	return m.meter.Sample(ctx, nodes, vms)
}

// running lists the VMs whose pods run.
func (m *metrics) running(ctx context.Context, mark string) ([]meter.VM, error) {
	records, err := m.cluster.owned(ctx, mark)
	if err != nil {
		return nil, err
	}
	states, err := m.cluster.runner.states(ctx, mark)
	if err != nil {
		return nil, err
	}
	all, err := m.pods.All(ctx)
	if err != nil {
		return nil, err
	}
	byVM := map[string]*pod{}
	for i := range all {
		one := &all[i].Object
		// While a VM migrates it has two pods.
		if s := states[one.Labels[object.LabelVM]]; object.MarkOf(one) == mark && s.power == target.PowerOn && s.node == one.Spec.NodeName {
			byVM[one.Labels[object.LabelVM]] = one
		}
	}
	var vms []meter.VM
	for _, r := range records {
		if p := byVM[r.VM.ID]; p != nil {
			vms = append(vms, meter.VM{
				Name: r.VM.Name, Group: r.VM.Group, Node: p.Spec.NodeName, Namespace: p.Namespace, Pod: p.Name, UID: string(p.UID), VCPUs: r.VCPUs,
			})
		}
	}
	return vms, nil
}
