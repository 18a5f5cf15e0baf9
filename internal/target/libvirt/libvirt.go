// Package libvirt is the target for one or several hosts with libvirt and QEMU: hosts are nodes, their domains are VMs.
// It runs the program virsh, which supports every transport and every version of the daemon.
//
//	Create ──▶ domain with the tag in its metadata ──▶ volumes with the tag in their names      (create.go)
//	PowerOnVMs, SnapshotVMs, CloneVM, MigrateVMs ──▶ survey of all nodes ──▶ act on its result
//	Delete ──▶ domain off ──▶ volumes removed ──▶ domain removed: what is left can be found by its tag
//
// The domain is defined before its volumes are made and undefined after they are removed, so there is always an object
// that names the owner of a volume. The package keeps state only for hosts that are off and cannot be queried
// (memory.go). Target is composed of parts, each with the capabilities of one subject; the packages below handle one
// host each.
package libvirt

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/meter"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/login"
)

// Target is a group of libvirt hosts.
type Target struct {
	*cluster     // hosts: ready, space, lock, what others have there
	*builder     // Create, CloneVM
	*remover     // Owned, Delete
	*operations  // power, snapshots, migration, placement of VMs
	*agents      // connections to agents
	*meter.Meter // metrics of nodes and VMs
	config       target.Config
	power        *nodePower
}

var (
	_ target.Target           = (*Target)(nil)
	_ target.AgentDialer      = (*Target)(nil)
	_ target.VMPower          = (*Target)(nil)
	_ target.Cloner           = (*Target)(nil)
	_ target.Snapshotter      = (*Target)(nil)
	_ target.Migrator         = (*Target)(nil)
	_ target.Placer           = (*Target)(nil)
	_ target.ReadyChecker     = (*Target)(nil)
	_ target.DatastoreChecker = (*Target)(nil)
	_ target.SpaceMeter       = (*Target)(nil)
	_ target.NodeMeter        = (*Target)(nil)
	_ target.VMMeter          = (*Target)(nil)
	_ target.Locker           = (*Target)(nil)
	_ target.OtherLister      = (*Target)(nil)
	_ target.HostChecker      = (*Target)(nil)
	_ target.GuestLogins      = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:    "libvirt",
		Summary: "hosts with libvirt and QEMU: domains as VMs, volumes of a pool as disks",
		Open: func(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
			return open(ctx, c, o, virsh.Run)
		},
	}
}

// open opens the hosts of c as a target; run makes the calls. It makes none yet.
func open(ctx context.Context, c target.Config, o target.OpenOptions, run virsh.Runner) (target.Target, error) {
	t, err := prepare(c, o, run)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Nodes, func(n target.NodeConfig) bool { return n.BMC != nil }) {
		return t, nil
	}
	if t.power.bmcs, err = bmc.OpenNodes(ctx, c, t.power); err != nil {
		return nil, err
	}
	return t.powered(), nil
}

func prepare(c target.Config, o target.OpenOptions, run virsh.Runner) (*Target, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	if len(c.Nodes) == 0 {
		return nil, &diag.Error{Code: "target-no-nodes", Exit: diag.ExitData, Message: "open libvirt target: no nodes"}
	}
	hosts := &cluster{pool: s.pool}
	var clients []*domain.Client
	for _, nc := range c.Nodes {
		endpoint := nc.Endpoint
		if endpoint == "" && len(c.Nodes) == 1 {
			endpoint = c.Endpoint
		}
		if endpoint == "" && nc.Address != "" {
			endpoint = "qemu+ssh://" + nc.Address + "/system"
		}
		host, err := virsh.NewHost(nc.ID, endpoint, run)
		if err != nil {
			return nil, err
		}
		n := &node{
			Host: host, config: nc, domains: domain.NewClient(host), store: storage.New(host, s.pool, s.storage == storageShared),
		}
		hosts.nodes, clients = append(hosts.nodes, n), append(clients, n.domains)
	}
	vms, kept := &target.KeyLocks{}, &memory{dir: o.Dir}
	power := &nodePower{cluster: hosts}
	images := &templates{config: c, read: map[string]*template{}, brought: map[string]bool{}}
	guests := &seeds{authority: o.Authority, program: o.AgentProgram, settings: s, keys: login.NewKeyring(), templates: images, planted: map[string]bool{}}
	calls := newAgents(hosts, o.Authority)
	removing := &remover{cluster: hosts, memory: kept, locks: vms, agents: calls, templates: images, power: power}
	return &Target{
		config: c, cluster: hosts, power: power, agents: calls, remover: removing, Meter: meter.New(clients),
		builder: &builder{
			cluster: hosts, settings: s, templates: images, seeds: guests, addresses: &address.Allocator{Range: s.addresses}, memory: kept,
			locks: vms, remover: removing,
		},
		operations: &operations{cluster: hosts, cache: s.cache, memory: kept, locks: vms, agents: calls, seeds: guests},
	}, nil
}

func (t *Target) name() string {
	if t.config.Name != "" {
		return t.config.Name
	}
	return "libvirt"
}

// Close ends the connections to agents and hosts. VMs and volumes stay.
func (t *Target) Close() error {
	t.cluster.closed.Store(true)
	t.agents.close()
	t.Meter.Close()
	var all sync.WaitGroup
	for _, n := range t.nodes {
		all.Go(n.Host.Close)
	}
	all.Wait()
	return nil
}

// onEach is target.Each for VMs, which errors name. A nil VM is skipped.
func onEach(ctx context.Context, action string, vms []*vmInfo, do func(one *vmInfo) error) error {
	return target.Each(ctx, len(vms), func(i int) error {
		if vms[i] == nil {
			return nil
		}
		name := vms[i].record.VM.Name
		ended := target.Observe(ctx, name)
		err := do(vms[i])
		ended(err)
		if err != nil {
			return fmt.Errorf("%s vm %q: %w", action, name, err)
		}
		return nil
	})
}
