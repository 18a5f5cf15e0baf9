package nutanix

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// Inventory describes the cluster.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	nodes, err := t.cluster.fresh(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	state, err := t.cluster.ahv.State(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	container, err := t.cluster.ahv.Container(ctx, t.cluster.container.Key())
	if err != nil {
		return target.Inventory{}, err
	}
	subnet, err := t.cluster.references(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	i := target.Inventory{
		Provider: "nutanix", Name: t.name(), Hypervisor: "ahv", Systems: true, Topologies: true, Templates: t.cluster.config.TemplateNames(),
		PowerAllowed: t.config.Allow.NodePower, MaintenanceAllowed: t.config.Allow.Maintenance,
		ContainerSettingsAllowed: t.config.Allow.ContainerSettings, Replication: t.replication(container),
		AddressesMax: t.cluster.settings.addresses.Count(), RestartsElsewhere: true, Boots: map[string]target.Boot{},
		Logins: &target.Logins{Password: t.config.GuestCredential()},
	}
	for _, n := range nodes {
		i.Nodes = append(i.Nodes, n.describe())
	}
	for _, name := range i.Templates {
		i.Boots[name] = target.Boot{Alone: bootAlone, Basis: "under AHV, assumed"}
	}
	if i.FreeBytes, i.TotalBytes, err = t.cluster.ahv.Space(ctx, container.Key()); err != nil {
		return target.Inventory{}, fmt.Errorf("read the space of storage container %q: %w", container.Name, err)
	}
	affinity, err := t.cluster.affinityFacts(ctx)
	if err != nil && !t.cluster.sought.Load() {
		return target.Inventory{}, err
	}
	i.Facts = slices.Concat(t.config.Facts, t.facts(state, container, subnet, nodes), affinity, t.cluster.addresses.Facts())
	if t.cluster.bmcs != nil {
		i.Facts = append(i.Facts, t.cluster.bmcs.Facts()...)
	}
	return i, nil
}

// bootAlone is assumed for cloud images, not measured.
const bootAlone = 45 * time.Second

func (t *Target) name() string {
	if t.config.Name != "" {
		return t.config.Name
	}
	return t.cluster.ahv.Name
}

// replication is the number of copies in the container, unless the target file says otherwise: Prism gives its free space before
// replication.
func (t *Target) replication(c ahv.Container) int {
	if t.config.Replication > 0 {
		return t.config.Replication
	}
	return c.Replication
}

func (n *node) describe() target.Node {
	h := n.host
	address := n.config.Address
	if address == "" {
		address = h.Hypervisor.Address.IPv4.Value
	}
	return target.Node{
		ID: n.id, Name: n.name, Address: address, CPUs: h.CPUs(), RAMBytes: h.RAMBytes, HasBMC: n.config.BMC != nil,
		CVM: h.CVM.Address.IPv4.Value,
	}
}

// references returns the subnet of VMs, or what the target file names and Prism does not have: a run would fail on it later. Once a run has
// begun, its VMs are removed all the same.
func (c *cluster) references(ctx context.Context) (subnet ahv.Subnet, err error) {
	defer func() {
		if c.sought.Load() {
			err = nil
		}
	}()
	if err := c.client.Know(ctx, "clustermgmt", "vmm", "networking", "prism", "dataprotection"); err != nil {
		return subnet, err
	}
	subnet, err = c.ahv.Subnet(ctx, c.settings.network)
	return subnet, all(err, c.templates.check(ctx))
}

// all makes one line of several errors, without those that are nil.
func all(errs ...error) (whole error) {
	for _, err := range errs {
		switch {
		case whole == nil:
			whole = err
		case err != nil:
			whole = fmt.Errorf("%w; %w", whole, err)
		}
	}
	return whole
}

func (t *Target) facts(s ahv.State, c ahv.Container, subnet ahv.Subnet, nodes []*node) []target.Fact {
	var facts []target.Fact
	add := func(name, format string, args ...any) {
		facts = append(facts, target.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("cluster", "%s, AOS %s", s.Name, s.Config.Build.Version)
	var versions []string
	known := t.cluster.client.Versions()
	for _, namespace := range slices.Sorted(maps.Keys(known)) {
		versions = append(versions, namespace+" "+known[namespace])
	}
	add("Prism API", "%s", strings.Join(versions, ", "))
	if t.config.TLS == target.TLSUnverified {
		add("TLS of Prism", "unverified")
	}
	add("subnet", "%s", subnet.Name)
	add("storage container", "%s", c.Name)
	facts = append(facts, containerFacts(c)...)
	add("balancing", "AHV moves VMs of the whole cluster or none (ADS): it cannot be turned off for single VMs")
	add("write cache", "Prism does not report how full the oplog is: steps that wait until it is empty are refused")
	if t.config.Allow.CVMs {
		add("CVMs", "power cuts of nodes may take their CVMs down")
	}
	for _, n := range nodes {
		add("hypervisor of "+n.name, "%s", n.host.Hypervisor.Name)
		if why := n.host.Trouble(); why != "" {
			add("state of "+n.name, "%s", why)
		}
	}
	return facts
}

// containerFacts are the settings of a storage container that change what storage does.
func containerFacts(c ahv.Container) []target.Fact {
	compression := "unknown"
	if c.Compression != nil {
		compression = "off"
		if *c.Compression {
			compression = fmt.Sprintf("on, after %d s", c.CompressionDelay)
		}
	}
	code := strings.ToLower(c.ErasureCode)
	if code == "" {
		code = "unknown"
	}
	return []target.Fact{
		{Name: "replication factor of " + c.Name, Value: fmt.Sprint(c.Replication)},
		{Name: "compression of " + c.Name, Value: compression},
		{Name: "erasure coding of " + c.Name, Value: code},
	}
}
