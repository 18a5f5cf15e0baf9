package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/drs"
	"github.com/braggdev/bragg/internal/target/vsphere/meter"
	"github.com/braggdev/bragg/internal/target/vsphere/storage"
	"github.com/braggdev/bragg/internal/unit"
)

// Inventory describes the cluster. The order of nodes is that of the target file, then that of their names.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	if err := t.usable(ctx); err != nil {
		return target.Inventory{}, err
	}
	if err := t.checkPrivileges(ctx); err != nil {
		return target.Inventory{}, err
	}
	hosts, err := t.readHosts(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	ds, err := t.readDatastore(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	pod, err := storage.Facts(ctx, t.vc, ds)
	if err != nil {
		return target.Inventory{}, err
	}
	config, err := t.drs.Config(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	inventory := target.Inventory{
		Provider: "vsphere", Name: t.name(), Hypervisor: "esx", Systems: true, Topologies: true, Overcommits: true,
		Templates: t.config.TemplateNames(), PowerAllowed: t.config.Allow.NodePower, MaintenanceAllowed: t.config.Allow.Maintenance,
		Replication:  t.config.Replication,
		AddressesMax: t.settings.addresses.Count(), RestartsElsewhere: drs.HAOn(config), Logins: &target.Logins{Password: t.config.GuestCredential()},
		FreeBytes: ds.Summary.FreeSpace, TotalBytes: ds.Summary.Capacity, Boots: map[string]target.Boot{},
	}
	for _, name := range inventory.Templates {
		inventory.Boots[name] = target.Boot{Alone: bootCloud, Basis: "a cloud image on ESXi, assumed"}
	}
	for _, h := range hosts {
		inventory.Nodes = append(inventory.Nodes, t.describe(h))
	}
	inventory.Facts = slices.Concat(t.config.Facts, t.facts(hosts, ds), pod, drs.Facts(config), meter.Facts(), t.power.bmcs.Facts(), t.addresses.Facts())
	return inventory, nil
}

// bootCloud is how long a guest boots until its agent answers.
const bootCloud = 45 * time.Second

// readHosts reads what the inventory says of hosts, in the order of nodes.
func (t *Target) readHosts(ctx context.Context) ([]mo.HostSystem, error) {
	known, err := t.hosts(ctx)
	if err != nil {
		return nil, err
	}
	var refs []types.ManagedObjectReference
	for _, h := range known {
		refs = append(refs, h.ref)
	}
	if len(refs) == 0 {
		return nil, fmt.Errorf("cluster %q has no hosts", t.cluster.name)
	}
	var hosts []mo.HostSystem
	err = t.vc.Collector().Retrieve(ctx, refs, []string{
		"name", "summary.hardware", "config.product", "runtime.connectionState", "runtime.inMaintenanceMode",
	}, &hosts)
	if err != nil {
		return nil, t.vc.Explain(fmt.Sprintf("read the hosts of cluster %q", t.cluster.name), err)
	}
	slices.SortFunc(hosts, func(a, b mo.HostSystem) int {
		return cmp.Or(cmp.Compare(t.listed(a), t.listed(b)), strings.Compare(a.Name, b.Name), strings.Compare(a.Self.Value, b.Self.Value))
	})
	return hosts, nil
}

// listed is the place of a host among the nodes of the target file, after all of them if it is not there.
func (t *Target) listed(h mo.HostSystem) int {
	i := slices.IndexFunc(t.config.Nodes, func(n target.NodeConfig) bool { return n.ID == h.Self.Value })
	if i < 0 {
		return len(t.config.Nodes)
	}
	return i
}

func (t *Target) describe(h mo.HostSystem) target.Node {
	n := target.Node{ID: h.Self.Value, Name: h.Name, Address: h.Name}
	if hw := h.Summary.Hardware; hw != nil {
		n.CPUs, n.RAMBytes = int(hw.NumCpuThreads), hw.MemorySize
	}
	if i := t.listed(h); i < len(t.config.Nodes) {
		given := t.config.Nodes[i]
		n.Name, n.Address, n.HasBMC = cmp.Or(given.Name, n.Name), cmp.Or(given.Address, n.Address), given.BMC != nil
	}
	return n
}

func (t *Target) facts(hosts []mo.HostSystem, ds mo.Datastore) []target.Fact {
	about := t.vc.ServiceContent.About
	facts := []target.Fact{
		{Name: "vCenter", Value: cmp.Or(about.FullName, fmt.Sprintf("%s %s build-%s", about.Name, about.Version, about.Build))},
		{Name: "cluster", Value: fmt.Sprintf("%s in %s", t.cluster.name, t.datacenter.name)},
		{Name: "datastore", Value: fmt.Sprintf("%s, %s, %s", t.datastore.name, ds.Summary.Type, unit.FormatBytes(ds.Summary.Capacity))},
		{Name: "network", Value: t.network.name},
		{Name: "disks", Value: t.settings.disks},
	}
	if t.config.TLS == target.TLSUnverified {
		facts = append(facts, target.Fact{Name: "TLS of the vCenter", Value: "not verified: a man in the middle could read the password"})
	}
	versions := map[string][]string{}
	for _, h := range hosts {
		text := "unknown version"
		if h.Config != nil {
			text = h.Config.Product.FullName
		}
		versions[text] = append(versions[text], h.Name)
		if state := h.Runtime.ConnectionState; state != types.HostSystemConnectionStateConnected {
			facts = append(facts, target.Fact{Name: "state of " + h.Name, Value: "vCenter shows it as " + string(state)})
		}
		if h.Runtime.InMaintenanceMode {
			facts = append(facts, target.Fact{Name: "state of " + h.Name, Value: "in maintenance mode"})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(versions)) {
		facts = append(facts, target.Fact{Name: "software of " + strings.Join(versions[text], ", "), Value: text})
	}
	return facts
}

func join(hosts map[string]*host) string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
