package document

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// DatabaseCPUs are the CPUs of the databases that a load uses, all together.
type DatabaseCPUs struct {
	VCPUs float64 `json:"vcpus"`
	// Cores: a vCPU of an endpoint is a thread, of which a core has as many as the scenario states; one of a VM is a core, unless the
	// topology of its group has several threads for each.
	Cores float64 `json:"cores"`
}

// databaseCPUs returns those of a load; nil for one without a database, and where they are not known.
func databaseCPUs(m *result.Manifest, p *plan.Plan, l *result.LoadSummary) *DatabaseCPUs {
	w, _ := p.Workload(l.Workload)
	if w.Load == nil || l.Prefill {
		return nil
	}
	if e := w.Load.EndpointCPUs; e != nil {
		return endpointCPUs(e, l.VMs)
	}
	split := w.Servers != nil && w.Servers.Holds
	g, known := p.Group(w.DataGroup())
	if !known || !split && !w.Load.BesideServer || m.Target.Provider == "ssh" { // whose machines have CPUs of their own
		return nil
	}
	vms := l.VMs
	if split {
		vms = g.Count
	}
	vcpus := float64(g.VCPUs * vms)
	return &DatabaseCPUs{VCPUs: vcpus, Cores: vcpus / float64(max(1, g.Topology.Threads))}
}

func endpointCPUs(e *load.EndpointCPUs, vms int) *DatabaseCPUs {
	if !e.Each {
		vms = 1
	}
	vcpus := float64(e.VCPUs * vms)
	return &DatabaseCPUs{VCPUs: vcpus, Cores: vcpus / float64(max(1, e.Threads))}
}

// PerVCPU is the throughput of the load for each vCPU of its database, NaN if they are not known.
func (w *Workload) PerVCPU() result.Number {
	if w.DatabaseCPUs == nil {
		return result.Number(math.NaN())
	}
	return w.OperationsRate / result.Number(w.DatabaseCPUs.VCPUs)
}

// PerCore is that for each core.
func (w *Workload) PerCore() result.Number {
	if w.DatabaseCPUs == nil {
		return result.Number(math.NaN())
	}
	return w.OperationsRate / result.Number(w.DatabaseCPUs.Cores)
}
