// Package vsphere is the target for a cluster of a vCenter: its hosts are nodes, its VMs are VMs. It speaks the SOAP API
// with govmomi.
//
//	Create, CloneVM ──▶ clone task ──▶ reconfigure with owner, record and identity of the guest ──▶ read back  (create.go)
//	PowerOnVMs, SnapshotVMs, MigrateVMs, … ──▶ survey of the cluster ──▶ task on each VM              (operations.go)
//	Delete ──▶ power off ──▶ overrides of DRS and HA removed ──▶ destroyed                             (delete.go)
//
// The owner of a VM is in its settings, its name and its annotation (package record), so that everything is found again
// without a file on this machine. Target is composed of parts, each with the capabilities of one subject; the packages
// below handle the connection, records, metrics and events.
package vsphere

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/target/vsphere/meter"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// platformCredential is the entry of credentials with which this program logs in to the vCenter.
const platformCredential = "platform"

// Target is one cluster.
type Target struct {
	*site       // hosts and datastore: ready, space
	*builder    // Create, CloneVM
	*remover    // Owned, Delete, what others have
	*operations // power, snapshots, migration, placement of VMs
	*agents     // connections to agents
	*maintainer // maintenance mode of hosts
	*lock
	*meter.Meter               // metrics of nodes and VMs
	config       target.Config // its nodes have the ids of the cluster's hosts
	power        *nodePower

	privileges sync.Mutex
	privileged bool // the user has all privileges
}

var (
	_ target.Target             = (*Target)(nil)
	_ target.AgentDialer        = (*Target)(nil)
	_ target.Addresser          = (*Target)(nil)
	_ target.VMPower            = (*Target)(nil)
	_ target.Cloner             = (*Target)(nil)
	_ target.Snapshotter        = (*Target)(nil)
	_ target.Migrator           = (*Target)(nil)
	_ target.DatastoreRelocator = (*Target)(nil)
	_ target.Placer             = (*Target)(nil)
	_ target.ReadyChecker       = (*Target)(nil)
	_ target.DatastoreChecker   = (*Target)(nil)
	_ target.SpaceMeter         = (*Target)(nil)
	_ target.Locker             = (*Target)(nil)
	_ target.Identified         = (*Target)(nil)
	_ target.OtherLister        = (*Target)(nil)
	_ target.HostChecker        = (*Target)(nil)
	_ target.GuestLogins        = (*Target)(nil)
	_ target.Maintainer         = (*Target)(nil)
	_ target.EventWatcher       = (*Target)(nil)
	_ target.NodeMeter          = (*Target)(nil)
	_ target.VMMeter            = (*Target)(nil)
	_ target.Reverter           = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:       "vsphere",
		Summary:    "a cluster of a vCenter: ESXi hosts as nodes, VMs from templates or from an image of Bragg",
		FindsNodes: true,
		Open:       open,
	}
}

// open connects to the vCenter and finds the objects of the target file.
func open(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	vc, err := dial(ctx, c)
	if err != nil {
		return nil, err
	}
	t, err := prepare(ctx, vc, c, s, o)
	if err != nil {
		vc.Close()
		return nil, err
	}
	if !slices.ContainsFunc(t.config.Nodes, func(n target.NodeConfig) bool { return n.BMC != nil }) {
		return t, nil
	}
	if t.power.bmcs, err = bmc.OpenNodes(ctx, t.config, t.power); err != nil {
		vc.Close()
		return nil, err
	}
	return t.powered(), nil
}

func dial(ctx context.Context, c target.Config) (*vcenter.Client, error) {
	given, ok := c.Credentials[platformCredential]
	if !ok || given.User == "" {
		return nil, &diag.Error{
			Code: "vsphere-credential", Exit: diag.ExitUnavailable, Message: "log in to the vCenter: the target file names no user",
			Hint: "credentials: {platform: {user: bragg@vsphere.local, secret: {env: NAME}}}",
		}
	}
	password, err := given.Secret.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("log in to the vCenter: credential %q: %w", platformCredential, err)
	}
	if password == "" {
		return nil, &diag.Error{
			Code: "vsphere-credential", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("log in to the vCenter: credential %q: the password is empty", platformCredential),
		}
	}
	return vcenter.Dial(ctx, vcenter.Options{Endpoint: c.Endpoint, User: given.User, Password: password, Trust: c.Trust("vCenter")})
}

func prepare(ctx context.Context, vc *vcenter.Client, c target.Config, s settings, o target.OpenOptions) (*Target, error) {
	where, err := findSite(ctx, vc, s)
	if err != nil {
		return nil, err
	}
	hosts, err := where.hosts(ctx)
	if err != nil {
		return nil, err
	}
	if c.Nodes, err = match(c.Nodes, hosts); err != nil {
		return nil, err
	}
	vms, keys := &target.KeyLocks{}, login.NewKeyring()
	images := &templates{site: where, config: c}
	guests := &guests{authority: o.Authority, settings: s, keys: keys, templates: images, planted: map[string]bool{}}
	power := &nodePower{site: where}
	calls := newAgents(where, o.Authority, power)
	removing := &remover{site: where, locks: vms, agents: calls, power: power}
	return &Target{
		site: where, config: c, remover: removing, agents: calls, lock: &lock{site: where}, power: power,
		Meter: meter.New(vc, metered{where}), maintainer: &maintainer{site: where, allowed: c.Allow.Maintenance},
		builder:    &builder{site: where, templates: images, guests: guests, addresses: &address.Allocator{Range: s.addresses}, locks: vms, remover: removing},
		operations: &operations{site: where, locks: vms, agents: calls, guests: guests},
	}, nil
}

// match gives the nodes of the target file the ids of hosts. An entry names a host by its name, its object in the vCenter
// or its address.
func match(nodes []target.NodeConfig, hosts map[string]*host) ([]target.NodeConfig, error) {
	var all []target.NodeConfig
	seen := map[string]string{}
	for _, n := range nodes {
		id := ""
		for _, h := range hosts {
			if h.name == n.ID || h.ref.Value == n.ID || n.Name != "" && h.name == n.Name || n.Address != "" && h.name == n.Address {
				id = h.ref.Value
			}
		}
		if id == "" {
			return nil, &diag.Error{
				Code: "vsphere-no-node", Exit: diag.ExitData, Message: fmt.Sprintf("node %q of the target file is not a host of the cluster", n.ID),
				Hint: "the hosts are " + join(hosts),
			}
		}
		if other, twice := seen[id]; twice {
			return nil, &diag.Error{Code: "vsphere-same-host", Exit: diag.ExitData, Message: fmt.Sprintf("nodes %q and %q are the same host", other, n.ID)}
		}
		seen[id] = n.ID
		if n.Name == "" {
			n.Name = hosts[id].name
		}
		n.ID = id
		all = append(all, n)
	}
	return all, nil
}

func (t *Target) name() string {
	if t.config.Name != "" {
		return t.config.Name
	}
	return t.cluster.name
}

// Close ends the connections to agents and to the vCenter. VMs stay.
func (t *Target) Close() error {
	t.agents.Close()
	t.vc.Close()
	return nil
}

// onEach is target.Each for VMs, which errors name. A nil VM is skipped.
func (t *site) onEach(ctx context.Context, action string, vms []*vmInfo, do func(one *vmInfo) error) error {
	names, errs := make([]string, len(vms)), make([]error, len(vms))
	err := target.Each(ctx, len(vms), func(i int) error {
		if vms[i] == nil {
			return nil
		}
		names[i] = vms[i].owner.Record.VM.Name
		ended := target.Observe(ctx, names[i])
		errs[i] = do(vms[i])
		ended(errs[i])
		return nil
	})
	return t.vc.ExplainEach(action, names, errs, err)
}
