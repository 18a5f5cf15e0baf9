// Package libvirt is the target of one or several hosts with libvirt and QEMU: they are the nodes, their domains the
// VMs. It speaks to them through the program virsh, which knows every transport and every version of the daemon.
//
//	Create ──▶ domain with the tag in its metadata ──▶ volumes with the tag in their names      (create.go)
//	PowerOnVMs, SnapshotVMs, CloneVM, MigrateVMs ──▶ survey of all nodes ──▶ act on what it shows
//	Delete ──▶ domain off ──▶ volumes away ──▶ domain away: whatever is left can be found by its tag
//
// The domain is defined before its volumes are made and undefined after they are removed, so there is always something
// that says whose a volume is. Nothing is remembered but what hosts cannot tell while they are switched off (memory.go).
// Every call of virsh may fail, or have had its effect and still seem to have failed: what was to be done is then looked
// at, and done again (virsh.go).
package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

const (
	disksMax = 200
)

// Target is a group of libvirt hosts.
type Target struct {
	config   target.Config
	settings settings
	options  target.OpenOptions
	nodes    []*node
	memory   *memory
	meter    *meter
	vmMeter  *vmMeter
	looks    together // of those who dial agents
	listener listener // from then on

	mu        sync.Mutex
	closed    bool
	locks     map[string]*sync.Mutex // by VM
	reserved  map[netip.Addr]string  // addresses of VMs that are being made, to the VM
	conns     map[string][]*conn     // to agents, by VM
	templates map[string]*template   // that were read
	brought   map[string]bool        // kernels that a storage has
	notes     []target.Fact          // found out meanwhile
	planted   map[string]bool        // VMs whose seed this program made
	marks     map[string]bool        // of the run, or runs, that used this target
	power     *bmc.Nodes             // nil: no node has a BMC
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
	_ target.NodeMeter        = (*Target)(nil)
	_ target.SpaceMeter       = (*Target)(nil)
	_ target.VMMeter          = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:    "libvirt",
		Summary: "hosts with libvirt and QEMU: domains as VMs, volumes of a pool as disks",
		Open: func(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
			return open(ctx, c, o, runVirsh)
		},
	}
}

// open opens the hosts of c as a target; run makes the calls. No host is asked yet.
func open(ctx context.Context, c target.Config, o target.OpenOptions, run runner) (target.Target, error) {
	t, err := prepare(c, o, run)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Nodes, func(n target.NodeConfig) bool { return n.BMC != nil }) {
		return t, nil
	}
	if t.power, err = bmc.OpenNodes(ctx, c, t); err != nil {
		return nil, err
	}
	return powered{t, t.power}, nil
}

func prepare(c target.Config, o target.OpenOptions, run runner) (*Target, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	if len(c.Nodes) == 0 {
		return nil, &diag.Error{Code: "target-no-nodes", Exit: diag.ExitData, Message: "open libvirt target: there are no nodes"}
	}
	t := &Target{
		config: c, settings: s, options: o, memory: &memory{dir: o.Dir}, locks: map[string]*sync.Mutex{},
		reserved: map[netip.Addr]string{}, conns: map[string][]*conn{}, templates: map[string]*template{}, brought: map[string]bool{},
		planted: map[string]bool{}, marks: map[string]bool{},
	}
	for _, nc := range c.Nodes {
		endpoint := nc.Endpoint
		if endpoint == "" && len(c.Nodes) == 1 {
			endpoint = c.Endpoint
		}
		if endpoint == "" && nc.Address != "" {
			endpoint = "qemu+ssh://" + nc.Address + "/system"
		}
		uri, err := checkURI(endpoint)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", nc.ID, err)
		}
		tunnel, err := newTunnel(uri, run)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", nc.ID, err)
		}
		t.nodes = append(t.nodes, &node{id: nc.ID, config: nc, uri: uri, tunnel: tunnel, runner: run, pool: s.pool})
	}
	t.meter, t.vmMeter = newMeter(), newVMMeter()
	return t, nil
}

// Inventory describes the hosts that answer. It is an error when none does.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	if err := t.usable(ctx); err != nil {
		return target.Inventory{}, err
	}
	looks := make([]look, len(t.nodes))
	var all sync.WaitGroup
	for i, n := range t.nodes {
		all.Go(func() { looks[i] = t.lookAt(ctx, n) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return target.Inventory{}, context.Cause(ctx)
	}
	inventory := target.Inventory{
		Provider: "libvirt", Name: t.name(), Hypervisor: "kvm", Systems: true, Templates: t.templateNames(), PowerAllowed: t.config.Allow.NodePower,
		Replication: t.config.Replication, AddressesMax: t.settings.reserved(), RestartsWithNode: true,
		Imitated: map[target.Capability]string{
			target.CapPlacement: "libvirt balances nothing and restarts no VM elsewhere: automatic restart only starts a VM " +
				"again with its own node, and VMs stay where they are whether balancing is on or off",
		},
	}
	var errs []error
	for i, n := range t.nodes {
		inventory.Nodes = append(inventory.Nodes, t.describe(n, looks[i]))
		errs = append(errs, looks[i].err)
	}
	if !slices.Contains(errs, nil) {
		return target.Inventory{}, unreachable(errs)
	}
	if err := distinct(t.nodes, looks); err != nil {
		return target.Inventory{}, err
	}
	emulated := slices.ContainsFunc(looks, func(l look) bool { return l.accel.kind == accelTCG })
	inventory.Boots = boots(t.config.Templates, emulated)
	inventory.FreeBytes, inventory.TotalBytes = t.space(looks)
	inventory.Facts = append(slices.Clone(t.config.Facts), t.facts(looks)...)
	return inventory, nil
}

// unreachable is the error of a target none of whose hosts answers.
func unreachable(errs []error) error {
	e := &diag.Error{
		Code: "libvirt-unreachable", Exit: diag.ExitUnavailable, Message: "reach the hosts", Err: several(errs),
		Hint: "virsh --connect URI nodeinfo shows whether a host answers",
	}
	var told *diag.Error
	if errors.As(e.Err, &told) && told.Hint != "" {
		e.Hint = told.Hint // that of the first host: mostly it is one reason for all
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

// look is what a host showed, or why it did not.
type look struct {
	host  hostFacts
	pool  pool
	accel accelerator
	room  int // how many VMs the network there can give an address; 0: not known
	err   error
}

func (t *Target) lookAt(ctx context.Context, n *node) look {
	var l look
	if l.host, l.err = n.host(ctx); l.err != nil {
		return l
	}
	if l.pool, l.err = n.readPool(ctx, n.pool); l.err != nil {
		return l
	}
	if fresh, err := n.freshPool(ctx); err == nil {
		l.pool = fresh
	}
	l.room = t.addressRoom(ctx, n)
	l.accel, l.err = t.accelerator(ctx, n)
	return l
}

func (t *Target) describe(n *node, l look) target.Node {
	described := target.Node{
		ID: n.id, Name: n.config.Name, Address: n.config.Address, CPUs: l.host.cpus, RAMBytes: l.host.ramBytes,
		HasBMC: n.config.BMC != nil, AddressesMax: l.room,
	}
	if described.Name == "" {
		described.Name = n.id
	}
	return described
}

// distinct refuses two nodes that are the same host: a power cut or a placement would not mean what it says.
func distinct(nodes []*node, looks []look) error {
	seen := map[string]string{}
	for i, n := range nodes {
		uuid := looks[i].host.uuid
		if uuid == "" {
			continue
		}
		if other, twice := seen[uuid]; twice {
			return &diag.Error{
				Code: "libvirt-same-host", Exit: diag.ExitData,
				Message: fmt.Sprintf("nodes %q and %q are the same host: both say that their UUID is %s", other, n.id, uuid),
				Hint:    "each node has its own endpoint; cloned hosts need a host_uuid of their own in libvirtd.conf",
			}
		}
		seen[uuid] = n.id
	}
	return nil
}

// space adds up the pools, one that is shared only once.
func (t *Target) space(looks []look) (free, total int64) {
	counted := map[string]bool{}
	for i, l := range looks {
		if l.err != nil {
			continue
		}
		key := t.storage(t.nodes[i], l.pool)
		if !counted[key] {
			free, total = free+l.pool.Available, total+l.pool.Capacity
		}
		counted[key] = true
	}
	return free, total
}

// storage names the storage behind the pool of a node: nodes for which it is the same name share it. Pools of different nodes
// that have one UUID share nothing for that: hosts that were installed from one image have it too.
func (t *Target) storage(n *node, p pool) string {
	switch {
	case t.settings.storage == storageShared:
		return "shared"
	case p.Type == "netfs":
		return strings.Join([]string{"netfs", p.Source.Host.Name, p.Source.Dir.Path}, " ")
	}
	return n.id + " " + p.UUID
}

func (t *Target) facts(looks []look) []target.Fact {
	var facts []target.Fact
	for i, n := range t.nodes {
		l := looks[i]
		add := func(name, value string) {
			facts = append(facts, target.Fact{Name: name + " of " + t.describe(n, l).Name, Value: value})
		}
		if l.err != nil {
			add("state", "does not answer: "+l.err.Error())
			continue
		}
		add("software", l.host.software)
		add("accelerator", l.accel.describe())
		add("pool", fmt.Sprintf("%s, %s at %s", l.pool.Name, l.pool.Type, l.pool.Path))
	}
	if t.power != nil {
		facts = append(facts, t.power.Facts()...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(facts, t.notes...)
}

func (t *Target) name() string {
	if t.config.Name != "" {
		return t.config.Name
	}
	return "libvirt"
}

// Close ends the connections to agents and hosts. VMs and volumes stay.
func (t *Target) Close() error {
	t.mu.Lock()
	t.closed = true
	var open []*conn
	for _, list := range t.conns {
		open = append(open, list...)
	}
	t.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	t.meter.close()
	t.listener.close()
	var all sync.WaitGroup
	for _, n := range t.nodes {
		all.Go(n.tunnel.close)
	}
	all.Wait()
	return nil
}

var errClosed = errors.New("the target is closed")

// usable tells why nothing can be done any more.
func (t *Target) usable(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// node returns the node with that id.
func (t *Target) node(id string) (*node, error) {
	for _, n := range t.nodes {
		if n.id == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("find node %q: no such node", id)
}

// lock keeps calls on one VM from mixing. The returned function unlocks.
func (t *Target) lock(id string) func() {
	t.mu.Lock()
	m := t.locks[id]
	if m == nil {
		m = &sync.Mutex{}
		t.locks[id] = m
	}
	t.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// onEach is each for VMs, which errors name. A nil VM is skipped.
func onEach(ctx context.Context, action string, vms []*seen, do func(i int) error) error {
	return target.Each(ctx, len(vms), func(i int) error {
		if vms[i] == nil {
			return nil
		}
		ended := target.Observe(ctx, vms[i].record.VM.Name)
		err := do(i)
		ended(err)
		if err != nil {
			return fmt.Errorf("%s vm %q: %w", action, vms[i].record.VM.Name, err)
		}
		return nil
	})
}

// Ready returns nil when every host answers and has its pool.
func (t *Target) Ready(ctx context.Context) error {
	return target.Each(ctx, len(t.nodes), func(i int) error {
		return t.DatastoreVisible(ctx, t.nodes[i].id, t.settings.pool)
	})
}

// HostUp returns nil when libvirt answers on the node, now and at the first call: whoever waits for a node asks again.
func (t *Target) HostUp(ctx context.Context, nodeID string) error {
	if err := t.usable(ctx); err != nil {
		return err
	}
	n, err := t.node(nodeID)
	if err == nil {
		_, err = n.run(ctx, call{args: []string{"nodeinfo"}, limit: silentLimit})
	}
	return err
}

// DatastoreVisible returns nil when the node has an active pool of that name.
func (t *Target) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	if err := t.usable(ctx); err != nil {
		return err
	}
	n, err := t.node(nodeID)
	if err != nil {
		return err
	}
	info, err := n.query(ctx, "pool-info", "--pool="+datastore)
	if err != nil {
		return err
	}
	if state := parsePairs(info)["State"]; state != "running" {
		return fmt.Errorf("node %q: pool %q is %s", nodeID, datastore, state)
	}
	return nil
}
