// Package fake is a target in memory that has every capability. Everything in it is simulated, and reported as such: it is
// for planning against a cluster that is not available, and for tests of all packages above targets.
//
// It keeps the contract of package target like a real provider, records every operation, and can be made to fail. Agents
// are real servers on the far end of a pipe if OpenOptions.ServeAgent provides them.
package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	nodeCPUs      = 256
	nodeRAMBytes  = 4 * unit.TiB
	capacityBytes = 1024 * unit.TiB
)

// Operation is one call that made or attempted a change.
type Operation struct {
	Name    string // of the method: "PowerOnVMs"
	Subject string // name of a VM, or id of a node
	Detail  string // name of a snapshot, id of a node, …
}

// Fault decides whether an operation fails. It is called before the operation has any effect.
type Fault func(op Operation) error

// Target is the fake.
type Target struct {
	*cluster
	serve func(ctx context.Context, conn net.Conn, vm target.VM) error
}

// cluster is the simulated nodes with their objects and the changes made to them.
type cluster struct {
	config target.Config
	nodes  []target.Node

	mu         sync.Mutex
	machines   map[string]*machine
	nodesOff   map[string]bool
	resting    map[string]bool // nodes in maintenance
	operations []Operation
	fault      Fault
	samples    int
	reports    chan target.PlatformEvent
	foreign    int64 // bytes written by others
	closed     bool
}

// machine is one VM.
type machine struct {
	mark      string
	vm        target.VM
	template  string
	snapshots []string
	datastore string
	ha        bool
	balancing bool
	cycle     *cycle // nil: powered off
}

// cycle is one power cycle of a VM with its agents.
type cycle struct {
	ctx    context.Context // of this power cycle; kept because it outlives every call
	cut    context.CancelFunc
	agents sync.WaitGroup
}

var (
	_ target.Target             = (*Target)(nil)
	_ target.AgentDialer        = (*Target)(nil)
	_ target.VMPower            = (*Target)(nil)
	_ target.Cloner             = (*Target)(nil)
	_ target.Snapshotter        = (*Target)(nil)
	_ target.Migrator           = (*Target)(nil)
	_ target.DatastoreRelocator = (*Target)(nil)
	_ target.Placer             = (*Target)(nil)
	_ target.NodePower          = (*Target)(nil)
	_ target.ReadyChecker       = (*Target)(nil)
	_ target.NodeMeter          = (*Target)(nil)
	_ target.VMMeter            = (*Target)(nil)
	_ target.GuestShell         = (*Target)(nil)
	_ target.DatastoreChecker   = (*Target)(nil)
	_ target.DrainChecker       = (*Target)(nil)
	_ target.Simulator          = (*Target)(nil)
	_ target.OtherLister        = (*Target)(nil)
	_ target.SpaceMeter         = (*Target)(nil)
	_ target.EventWatcher       = (*Target)(nil)
	_ target.Maintainer         = (*Target)(nil)
	_ target.Reverter           = (*Target)(nil)
	_ target.ContainerSetter    = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name: "fake", Summary: "a simulated cluster in memory, with every capability", MakesNodes: true,
		Open: func(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
			return Open(ctx, c, o)
		},
	}
}

// Open makes an empty cluster.
func Open(_ context.Context, c target.Config, o target.OpenOptions) (*Target, error) {
	nodes, err := c.MakeNodes("fake")
	if err != nil {
		return nil, err
	}
	t := &Target{serve: o.ServeAgent, cluster: &cluster{
		config: c, nodes: nodes, machines: map[string]*machine{}, nodesOff: map[string]bool{}, resting: map[string]bool{},
		reports: make(chan target.PlatformEvent, reportsMax),
	}}
	for i := range t.nodes {
		t.nodes[i].CPUs, t.nodes[i].RAMBytes = nodeCPUs, nodeRAMBytes
	}
	return t, nil
}

// Simulated returns true.
func (t *Target) Simulated() bool { return true }

// SetFault makes operations fail according to f; nil disables it.
func (c *cluster) SetFault(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// Operations returns the operations so far.
func (c *cluster) Operations() []Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.operations)
}

// record records an operation and returns its injected failure. The caller holds the lock.
func (c *cluster) record(ctx context.Context, op Operation) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.closed {
		return errors.New("the target is closed")
	}
	c.operations = append(c.operations, op)
	if c.fault != nil {
		return c.fault(op)
	}
	return nil
}

// Inventory describes the cluster.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	if ctx.Err() != nil {
		return target.Inventory{}, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	inventory := target.Inventory{
		Provider: "fake", Name: t.config.Name, Simulated: true, Nodes: slices.Clone(t.nodes),
		Templates: slices.Sorted(maps.Keys(t.config.Templates)), AnyTemplate: len(t.config.Templates) == 0,
		TotalBytes: capacityBytes, Facts: slices.Clone(t.config.Facts),
		Replication: t.config.Replication, PowerAllowed: t.config.Allow.NodePower, MaintenanceAllowed: t.config.Allow.Maintenance, ContainerSettingsAllowed: true, Simulates: map[target.Capability]string{}, Topologies: true,
	}
	if inventory.Name == "" {
		inventory.Name = "fake"
	}
	for _, c := range target.Capabilities(t) {
		inventory.Simulates[c] = "everything is in memory"
	}
	inventory.FreeBytes = t.freeBytes()
	return inventory, nil
}

// Close cuts the power of all VMs and waits for their agents.
func (t *Target) Close() error {
	t.mu.Lock()
	t.closed = true
	cycles := t.cut(func(*machine) bool { return true })
	t.mu.Unlock()
	wait(cycles)
	return nil
}

// cut powers off the machines that match and returns the cycles for which the caller has to wait after releasing the lock.
func (c *cluster) cut(match func(*machine) bool) []*cycle {
	var cycles []*cycle
	for _, m := range c.machines {
		if m.cycle != nil && match(m) {
			m.cycle.cut()
			cycles = append(cycles, m.cycle)
			m.cycle = nil
		}
	}
	return cycles
}

func wait(cycles []*cycle) {
	for _, c := range cycles {
		c.agents.Wait()
	}
}

// find returns the machine of vm if it carries the tag; nil and nil if it does not exist. The caller holds the lock.
func (c *cluster) find(tag target.Tag, vm target.VM) (*machine, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	m := c.machines[vm.ID]
	if m != nil && m.mark != tag.Mark() {
		return nil, target.Foreign(fmt.Sprintf("vm %q", vm.Name))
	}
	return m, nil
}

// each calls do for every VM while holding the lock. All must carry the tag before any is changed.
func (c *cluster) each(ctx context.Context, tag target.Tag, vms []target.VM, op Operation, do func(*machine) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	machines := make([]*machine, len(vms))
	for i, vm := range vms {
		m, err := c.find(tag, vm)
		if err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
		}
		machines[i] = m
	}
	var errs []error
	for i, vm := range vms {
		op.Subject = vm.Name
		ended := target.Observe(ctx, vm.Name)
		err := c.record(ctx, op)
		if err == nil && machines[i] == nil {
			err = errors.New("it does not exist")
		}
		if err == nil {
			err = do(machines[i])
		}
		ended(err)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s vm %q: %w", op.Name, vm.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *cluster) nodeIsOn(id string) error {
	if !slices.ContainsFunc(c.nodes, func(n target.Node) bool { return n.ID == id }) {
		return fmt.Errorf("find node %q: no such node", id)
	}
	if c.nodesOff[id] {
		return fmt.Errorf("node %q is switched off", id)
	}
	return nil
}

func (m *machine) value() target.VM {
	vm := m.vm
	vm.Addresses, vm.Disks = slices.Clone(vm.Addresses), slices.Clone(vm.Disks)
	vm.Power = target.PowerOff
	if m.cycle != nil {
		vm.Power = target.PowerOn
	}
	return vm
}

func vmID(mark, name string) string {
	sum := sha256.Sum256([]byte(mark + "\x00" + name))
	return "fake-" + hex.EncodeToString(sum[:8])
}

// Others lists the VMs that do not carry the tag.
func (c *cluster) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []target.Other
	for _, m := range c.machines {
		if m.mark != tag.Mark() {
			all = append(all, target.Other{Kind: target.OtherVM, Name: m.vm.Name, NodeID: m.vm.NodeID, Why: target.WhyAnother})
		}
	}
	slices.SortFunc(all, func(a, b target.Other) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Owned lists the VMs that carry the tag.
func (c *cluster) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	mark, vms := tag.Mark(), []target.VM{}
	for _, m := range c.machines {
		if m.mark == mark {
			vms = append(vms, m.value())
		}
	}
	slices.SortFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return vms, nil
}
