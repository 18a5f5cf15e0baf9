package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/dhcp"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Inventory describes the hosts that answer. It returns an error if none does.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	if err := t.usable(ctx); err != nil {
		return target.Inventory{}, err
	}
	probes := make([]hostProbe, len(t.nodes))
	var all sync.WaitGroup
	for i, n := range t.nodes {
		all.Go(func() { probes[i] = n.probe(ctx, t.settings) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return target.Inventory{}, context.Cause(ctx)
	}
	inventory := target.Inventory{
		Provider: "libvirt", Name: t.name(), Hypervisor: "kvm", Systems: true, Topologies: true, Templates: t.config.TemplateNames(), PowerAllowed: t.config.Allow.NodePower,
		Replication: t.config.Replication, AddressesMax: t.settings.addresses.Count(), RestartsWithNode: true, Logins: t.logins(),
		Simulates: map[target.Capability]string{
			target.CapPlacement: "libvirt balances nothing and restarts no VM elsewhere: automatic restart only starts a VM " +
				"again with its own node, and VMs stay where they are whether balancing is on or off",
		},
	}
	var errs []error
	for i, n := range t.nodes {
		inventory.Nodes = append(inventory.Nodes, n.describe(probes[i]))
		errs = append(errs, probes[i].err)
	}
	if !slices.Contains(errs, nil) {
		return target.Inventory{}, unreachable(errs)
	}
	if err := distinct(t.nodes, probes); err != nil {
		return target.Inventory{}, err
	}
	emulated := slices.ContainsFunc(probes, func(p hostProbe) bool { return p.accel.Kind == domain.TCG })
	inventory.Boots = boots(t.config.Templates, emulated)
	inventory.FreeBytes, inventory.TotalBytes = space(probes)
	inventory.Facts = slices.Concat(t.config.Facts, facts(t.nodes, probes), t.power.bmcs.Facts(), t.addresses.Facts())
	return inventory, nil
}

// unreachable is the error of a target none of whose hosts answers.
func unreachable(errs []error) error {
	e := &diag.Error{
		Code: "libvirt-unreachable", Exit: diag.ExitUnavailable, Message: "reach the hosts", Err: several(errs),
		Hint: "virsh --connect URI nodeinfo shows whether a host answers",
	}
	var first *diag.Error
	if errors.As(e.Err, &first) && first.Hint != "" {
		e.Hint = first.Hint // mostly there is one reason for all
	}
	return e
}

// several are the errors of several hosts, on one line.
type several []error

func (s several) Error() string {
	var texts []string
	for _, err := range s {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (s several) Unwrap() []error { return s }

// hostProbe is what one host has for VMs, or why it did not answer.
type hostProbe struct {
	host         virsh.Facts
	pool         *storage.Pool // nil with err
	accel        domain.Accelerator
	addressesMax int // how many VMs its network can give an address; 0: not known
	err          error
}

func (n *node) probe(ctx context.Context, s settings) (p hostProbe) {
	if p.host, p.err = n.Facts(ctx); p.err != nil {
		return p
	}
	if p.pool, p.err = n.store.Pool(ctx); p.err != nil {
		return p
	}
	if fresh, err := n.store.Fresh(ctx); err == nil {
		p.pool = fresh
	}
	if !s.addresses.First.IsValid() {
		p.addressesMax = dhcp.DHCPMax(ctx, n.Host, s.network)
	}
	p.accel, p.err = n.accelerator(ctx, s)
	return p
}

// accelerator is what runs the node's VMs.
func (n *node) accelerator(ctx context.Context, s settings) (domain.Accelerator, error) {
	if s.accelerator != accelAuto {
		return domain.Accelerator{Kind: s.accelerator, Reason: "set in the target file"}, nil
	}
	return n.domains.Accelerator(ctx, s.cpu)
}

func (n *node) describe(p hostProbe) target.Node {
	return target.Node{
		ID: n.ID, Name: n.name(), Address: n.config.Address, CPUs: p.host.CPUs, RAMBytes: p.host.RAMBytes,
		HasBMC: n.config.BMC != nil, AddressesMax: p.addressesMax,
	}
}

// distinct refuses two nodes that are the same host: a power cut or a placement would not mean what it says.
func distinct(nodes []*node, probes []hostProbe) error {
	seen := map[string]string{}
	for i, n := range nodes {
		uuid := probes[i].host.UUID
		if uuid == "" {
			continue
		}
		if other, twice := seen[uuid]; twice {
			return &diag.Error{
				Code: "libvirt-same-host", Exit: diag.ExitData,
				Message: fmt.Sprintf("nodes %q and %q are the same host: both have the UUID %s", other, n.ID, uuid),
				Hint:    "each node has its own endpoint; cloned hosts need a host_uuid of their own in libvirtd.conf",
			}
		}
		seen[uuid] = n.ID
	}
	return nil
}

// space adds up the pools, a shared one once.
func space(probes []hostProbe) (free, total int64) {
	counted := map[string]bool{}
	for _, p := range probes {
		if p.err == nil && !counted[p.pool.Storage()] {
			free, total = free+p.pool.Available, total+p.pool.Capacity
			counted[p.pool.Storage()] = true
		}
	}
	return free, total
}

func facts(nodes []*node, probes []hostProbe) []target.Fact {
	var facts []target.Fact
	for i, n := range nodes {
		p := probes[i]
		add := func(name, value string) {
			facts = append(facts, target.Fact{Name: name + " of " + n.name(), Value: value})
		}
		if p.err != nil {
			add("state", "does not answer: "+p.err.Error())
			continue
		}
		add("software", p.host.Software)
		add("accelerator", p.accel.String())
		add("pool", fmt.Sprintf("%s, %s at %s", p.pool.Name, p.pool.Type, p.pool.Path))
	}
	return facts
}

// How long guests boot (docs/guides/images.md). The figures under KVM are assumed, not measured.
const (
	bootSmall        = 5 * time.Second // the small system, emulated
	bootCloud        = 90 * time.Second
	bootCloudCPU     = 2 * time.Minute
	bootCloudKVM     = 30 * time.Second
	basisMeasured    = "emulated, as measured"
	basisAssumedKVM  = "under KVM, assumed"
	basisSmallSystem = "small system, as measured"
)

// boots says how long VMs of each template of the target file boot. A template with a slash in it is the small system.
func boots(templates map[string]string, emulated bool) map[string]target.Boot {
	all := map[string]target.Boot{}
	for name, value := range templates {
		switch small := strings.Contains(value, "/"); {
		case small && emulated:
			all[name] = target.Boot{Alone: bootSmall, CPU: bootSmall, Basis: basisSmallSystem, AgentOnly: true}
		case small:
			all[name] = target.Boot{Alone: bootSmall, Basis: basisSmallSystem, AgentOnly: true}
		case emulated:
			all[name] = target.Boot{Alone: bootCloud, CPU: bootCloudCPU, Basis: basisMeasured}
		default:
			all[name] = target.Boot{Alone: bootCloudKVM, Basis: basisAssumedKVM}
		}
	}
	return all
}
