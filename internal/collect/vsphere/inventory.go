package vsphere

import (
	"context"
	"path"
	"strings"

	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/collect"
)

// objectsMax bounds hosts and VMs of one reading.
const objectsMax = 5000

// object is a host or VM whose counters are read.
type object struct {
	ref  types.ManagedObjectReference
	kind string // "host", "vm"
	name string
	host string // of a VM
	cpus int32  // of a VM
}

// found is what a server has.
type found struct {
	hosts, vms []object
	datastores map[string]datastore // by the name that counters give them
}

type datastore struct {
	name                string
	capacity, freeBytes int64
}

// inventory lists connected hosts, VMs with power that are wanted, and datastores, in one request each.
func (r *reader) inventory(ctx context.Context) (found, error) {
	f := found{datastores: map[string]datastore{}}
	kinds := []string{"HostSystem", "VirtualMachine", "Datastore"}
	v, err := view.NewManager(r.client).CreateContainerView(ctx, r.client.ServiceContent.RootFolder, kinds, true)
	if err != nil {
		return f, err
	}
	defer func() { _ = v.Destroy(context.WithoutCancel(ctx)) }()
	var hosts []mo.HostSystem
	var vms []mo.VirtualMachine
	var stores []mo.Datastore
	for _, one := range []struct {
		kind       string
		properties []string
		to         any
	}{
		{kinds[0], []string{"name", "runtime.connectionState"}, &hosts},
		{kinds[1], []string{"name", "runtime.host", "runtime.powerState", "summary.config.numCpu"}, &vms},
		{kinds[2], []string{"name", "summary.url", "summary.capacity", "summary.freeSpace"}, &stores},
	} {
		if err := v.Retrieve(ctx, []string{one.kind}, one.properties, one.to); err != nil {
			return f, err
		}
	}
	f.add(r.o, hosts, vms)
	for _, d := range stores {
		if !r.o.Reads(d.Name) {
			continue
		}
		one := datastore{d.Name, d.Summary.Capacity, d.Summary.FreeSpace}
		// Counters name a VMFS by its UUID, the last part of its URL; simulators by its reference.
		for _, instance := range []string{path.Base(strings.TrimSuffix(d.Summary.Url, "/")), d.Self.Value, d.Name} {
			f.datastores[instance] = one
		}
	}
	return f, nil
}

func (f *found) add(o collect.Options, hosts []mo.HostSystem, vms []mo.VirtualMachine) {
	names := map[types.ManagedObjectReference]string{}
	for _, h := range hosts {
		names[h.Self] = h.Name
		if h.Runtime.ConnectionState == types.HostSystemConnectionStateConnected && len(f.hosts) < objectsMax {
			f.hosts = append(f.hosts, object{ref: h.Self, kind: "host", name: h.Name, host: h.Name})
		}
	}
	for _, vm := range vms {
		if vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn || !o.ReadsVM(vm.Name) || len(f.vms) >= objectsMax {
			continue
		}
		one := object{ref: vm.Self, kind: "vm", name: vm.Name, cpus: max(vm.Summary.Config.NumCpu, 1)}
		if vm.Runtime.Host != nil {
			one.host = names[*vm.Runtime.Host]
		}
		f.vms = append(f.vms, one)
	}
}

// capacities are the sizes of datastores. They are as old as vCenter's last look at the datastore, which it does not say, so they have no time.
func (f *found) capacities() []collect.Sample {
	var out []collect.Sample
	seen := map[string]bool{}
	for _, d := range f.datastores {
		if seen[d.name] {
			continue
		}
		seen[d.name] = true
		labels := map[string]string{collect.LabelObject: "datastore", collect.LabelName: d.name}
		out = append(out, collect.Sample{Name: collect.Size, Labels: labels, Value: float64(d.capacity)},
			collect.Sample{Name: collect.Used, Labels: labels, Value: float64(d.capacity - d.freeBytes)})
	}
	return out
}
