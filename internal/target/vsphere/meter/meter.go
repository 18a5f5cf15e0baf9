// Package meter reads the use of hosts and VMs from the real-time counters of a vCenter.
//
//	SampleNodes, SampleVMs ──▶ QueryPerf of all hosts and VMs, in batches ──▶ newest interval of each ──▶ samples
//
// ESXi makes a value every 20 seconds, and vCenter shows it some seconds later. So a sample is up to half a minute old, and
// a load of a few seconds is a part of one value only: Facts says so. A value that the platform does not have is missing. The time of a sample is
// the end of its interval by the clock of this program: that of the vCenter is read with each query, as it may be off, and may be set meanwhile.
package meter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/performance"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

const (
	// intervalSeconds is that of real-time counters.
	intervalSeconds = 20
	// entitiesMax is how many objects one query has; vCenter refuses large answers.
	entitiesMax = 50
	// queryPause is the least time between two queries of the same objects: callers poll more often than values change.
	queryPause = 2 * time.Second
)

// Machine is a VM that is on.
type Machine struct {
	Ref   types.ManagedObjectReference
	VM    target.VM
	VCPUs int
}

// Source lists what there is to measure.
type Source interface {
	MeteredHosts(ctx context.Context) ([]types.ManagedObjectReference, error) // those that answer
	MeteredVMs(ctx context.Context, tag target.Tag) ([]Machine, error)        // those with the tag that are on
}

// Meter reads metrics. Its methods may be called concurrently.
type Meter struct {
	vc     *vcenter.Client
	source Source

	mu       sync.Mutex
	counters map[string]int32 // of the vCenter, by name
	nodes    reading
	vms      map[string]*reading // by mark
}

// reading is the last query of some objects.
type reading struct {
	at   time.Time
	seen map[string]stamp // of the newest interval that was returned, by object
}

// fresh reports whether s is newer than what was returned of its object, and remembers it.
func (r *reading) fresh(object types.ManagedObjectReference, s *series) bool {
	if s == nil || !s.after(r.seen[object.Value]) {
		return false
	}
	if r.seen == nil {
		r.seen = map[string]stamp{}
	}
	r.seen[object.Value] = s.stamp
	return true
}

// New returns a meter.
func New(vc *vcenter.Client, s Source) *Meter {
	return &Meter{vc: vc, source: s, vms: map[string]*reading{}}
}

// Facts says how old and how coarse the metrics are.
func Facts() []target.Fact {
	return []target.Fact{{
		Name:  "cluster and VM metrics",
		Value: fmt.Sprintf("averages of %d s by ESXi, up to 30 s old when they are read", intervalSeconds),
	}}
}

// SampleNodes reads values of hosts that answer, and that were not returned before.
func (m *Meter) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.prepare(ctx); err != nil {
		return nil, err
	}
	if time.Since(m.nodes.at) < queryPause {
		return nil, nil
	}
	hosts, err := m.source.MeteredHosts(ctx)
	if err != nil {
		return nil, err
	}
	found, err := m.query(ctx, hosts, slices.Collect(maps.Keys(hostMetrics)))
	if err != nil {
		return nil, m.vc.Explain("read the metrics of hosts", err)
	}
	m.nodes.at = time.Now()
	var values []target.NodeSample
	for _, h := range hosts {
		s := found[h]
		if !m.nodes.fresh(h, s) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(hostMetrics)) {
			if v, ok := s.total(name); ok {
				metric := hostMetrics[name]
				values = append(values, target.NodeSample{NodeID: h.Value, Metric: metric.name, At: s.at, Value: v * metric.factor})
			}
		}
	}
	return values, nil
}

// hostMetrics are the metrics of X-Ray, by counter, with the factor to their unit. vSphere's percentages are in 1/100 %.
var hostMetrics = map[string]struct {
	name   string
	factor float64
}{
	"cpu.usage.average":       {"CpuUsage.Avg.Percent", 0.01},
	"cpu.usagemhz.average":    {"CpuUsage.Avg.Megahertz", 1},
	"mem.usage.average":       {"MemUsage.Avg.Percent", 0.01},
	"net.received.average":    {"NetReceived.Avg.KilobytesPerSecond", 1},
	"net.transmitted.average": {"NetTransmitted.Avg.KilobytesPerSecond", 1},
}

// SampleVMs reads what SampleNodes does, and values of the VMs with the tag that were not returned before.
func (m *Meter) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	if err := tag.Check(); err != nil {
		return nil, nil, err
	}
	nodes, err := m.SampleNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.vms[tag.Mark()]
	if r == nil {
		r = &reading{}
		m.vms[tag.Mark()] = r
	}
	if time.Since(r.at) < queryPause {
		return nodes, nil, nil
	}
	machines, err := m.source.MeteredVMs(ctx, tag)
	if err != nil {
		return nil, nil, err
	}
	var refs []types.ManagedObjectReference
	for _, one := range machines {
		refs = append(refs, one.Ref)
	}
	found, err := m.query(ctx, refs, vmCounters)
	if err != nil {
		return nil, nil, m.vc.Explain("read the metrics of VMs", err)
	}
	r.at = time.Now()
	var all []target.VMSample
	for _, one := range machines {
		s := found[one.Ref]
		if !r.fresh(one.Ref, s) {
			continue
		}
		for _, v := range s.ofVM(one.VCPUs) {
			all = append(all, target.VMSample{
				VM: one.VM.Name, Group: one.VM.Group, NodeID: one.VM.NodeID, Metric: v.metric, At: s.at, Value: v.value,
			})
		}
	}
	return nodes, all, nil
}

// prepare reads which counters there are.
func (m *Meter) prepare(ctx context.Context) error {
	if m.counters != nil {
		return nil
	}
	found, err := performance.NewManager(m.vc.Client).CounterInfoByName(ctx)
	if err != nil {
		return m.vc.Explain("read the list of counters", err)
	}
	m.counters = map[string]int32{}
	for name, c := range found {
		m.counters[name] = c.Key
	}
	return nil
}
