// Package ssh is the target for existing Linux hosts, reached with the system's ssh. Each is a node, and a VM on it is the
// agent with files of the host as data disks. Nothing is installed: the agent's program is sent when it is needed, opens no
// port, and is removed with its VMs.
//
//	Create, PowerOnVMs, … ──▶ host (link.go): ssh, the program at its other end ──▶ package hostvm there
//	DialAgent ──▶ a stream of the same connection ──▶ socket of the agent ──▶ mutual TLS from end to end
//
// Real here: hosts, their disks, their networks, and the power of those with a BMC. Simulated, and listed in
// Inventory.Simulates: VMs are processes, their snapshots copies of files.
package ssh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// Target is a set of hosts.
type Target struct {
	config  target.Config
	options target.OpenOptions
	hosts   []*host

	mu   sync.Mutex
	tags map[string]target.Tag // by VM id, of VMs that this program has seen
}

var (
	_ target.Target       = (*Target)(nil)
	_ target.AgentDialer  = (*Target)(nil)
	_ target.VMPower      = (*Target)(nil)
	_ target.Cloner       = (*Target)(nil)
	_ target.Snapshotter  = (*Target)(nil)
	_ target.ReadyChecker = (*Target)(nil)
	_ target.NodeMeter    = (*Target)(nil)
	_ target.SpaceMeter   = (*Target)(nil)
	_ target.GuestLogins  = (*Target)(nil)
	_ target.NodeLogins   = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:    "ssh",
		Summary: "Linux hosts reached with ssh: agents as VMs, files of the hosts as disks, nothing installed",
		Open:    open,
	}
}

// optionSSH is the option whose words, of the form Name=value, are passed to ssh with -o.
const optionSSH = "ssh_options"

// Open checks the target file without connecting: hosts are contacted by the first operation that needs them.
func Open(_ context.Context, c target.Config, o target.OpenOptions) (*Target, error) {
	var list diag.List
	place := diag.Position{File: c.File}
	for name, value := range c.Options {
		switch {
		case name != optionSSH && name != optionPlaybooks:
			list.Errorf(place, "target-unknown-option", "unknown option %q of provider ssh (known: %s, %s)", name, optionPlaybooks, optionSSH)
		case name == optionPlaybooks && value != playbooksHosts:
			list.Errorf(place, "target-option", "option %s is %q, want %s", name, value, playbooksHosts)
		}
	}
	words := strings.Fields(c.Options[optionSSH])
	for _, w := range words {
		if name, _, ok := strings.Cut(w, "="); !ok || name == "" || strings.HasPrefix(w, "-") {
			list.Errorf(place, "target-ssh-option", "option %s: %q is not Name=value", optionSSH, w)
		}
	}
	builds := &sshlink.Builds{Path: o.AgentProgram}
	t := &Target{config: c, options: o, tags: map[string]target.Tag{}}
	for _, n := range c.Nodes {
		h, err := newHost(n, hostvm.Place{Folder: c.Pool, Leases: o.Leases}, &sshlink.Remote{Program: "bragg-agent", Verb: hostvm.Verb, Find: builds.Find, Options: words})
		if err != nil {
			list.Errorf(place, "target-address", "node %q: %v", n.ID, err)
			continue
		}
		t.hosts = append(t.hosts, h)
	}
	if len(c.Nodes) == 0 {
		list.Errorf(place, "target-no-nodes", "the target has no nodes")
	}
	return t, list.Err()
}

// Close ends the connections. VMs keep running.
func (t *Target) Close() error {
	return t.onHosts(func(_ int, h *host) error { return h.close() })
}

func (t *Target) host(nodeID string) (*host, error) {
	for _, h := range t.hosts {
		if h.node.ID == nodeID {
			return h, nil
		}
	}
	return nil, fmt.Errorf("find node %q: no such node", nodeID)
}

// onHosts calls do for all hosts concurrently, and returns all errors.
func (t *Target) onHosts(do func(i int, h *host) error) error {
	errs := make([]error, len(t.hosts))
	var all sync.WaitGroup
	for i, h := range t.hosts {
		all.Go(func() { errs[i] = do(i, h) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// byHost groups VMs by host.
func (t *Target) byHost(vms []target.VM) (map[*host][]target.VM, error) {
	sorted := map[*host][]target.VM{}
	for _, vm := range vms {
		h, err := t.host(vm.NodeID)
		if err != nil {
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, err)
		}
		sorted[h] = append(sorted[h], vm)
	}
	return sorted, nil
}

// onVMs sends the hosts of vms a request for their VMs, after all hosts have confirmed that none of them is foreign.
func (t *Target) onVMs(ctx context.Context, vms []target.VM, r hostvm.Request) error {
	sorted, err := t.byHost(vms)
	if err == nil && len(sorted) > 1 && r.Operation != hostvm.OpCheck {
		err = t.onVMs(ctx, vms, hostvm.Request{Operation: hostvm.OpCheck, Tag: r.Tag})
	}
	if err != nil {
		return err
	}
	return t.onHosts(func(_ int, h *host) error {
		if len(sorted[h]) == 0 {
			return nil
		}
		mine := r
		mine.VMs = sorted[h]
		_, err := h.call(ctx, mine)
		return err
	})
}

// remember records the tag of VMs.
func (t *Target) remember(tag target.Tag, vms []target.VM) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, vm := range vms {
		t.tags[vm.ID] = tag
	}
}

// Delete powers off and removes VMs with their disks.
func (t *Target) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := tag.Check(); err != nil {
		return err
	}
	return t.onVMs(ctx, vms, hostvm.Request{Operation: hostvm.OpDelete, Tag: tag})
}

// Owned lists the VMs that carry the tag, on all hosts.
func (t *Target) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	return t.owned(ctx, tag, func(_ *host, err error) ([]target.VM, error) { return nil, err })
}

// owned lists VMs; instead is called for a host that does not answer.
func (t *Target) owned(
	ctx context.Context, tag target.Tag, instead func(h *host, err error) ([]target.VM, error),
) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	found := make([][]target.VM, len(t.hosts))
	err := t.onHosts(func(i int, h *host) error {
		reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpOwned, Tag: tag})
		if found[i] = reply.VMs; err != nil {
			found[i], err = instead(h, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	vms := slices.Concat(found...)
	slices.SortFunc(vms, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	t.remember(tag, vms)
	if vms == nil {
		vms = []target.VM{}
	}
	return vms, nil
}

// PowerOnVMs starts the agents of VMs, each with its own identity.
func (t *Target) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if t.options.Authority == nil {
		return errors.New("power on VMs: no certificate authority for the identities of their agents")
	}
	sorted, err := t.byHost(vms)
	if err != nil {
		return err
	}
	if err := t.onVMs(ctx, vms, hostvm.Request{Operation: hostvm.OpCheck, Tag: tag}); err != nil {
		return err
	}
	t.remember(tag, vms)
	return t.onHosts(func(_ int, h *host) error {
		return target.Each(ctx, len(sorted[h]), func(i int) error {
			vm := sorted[h][i]
			identity, err := t.options.Authority.Agent(vm.Name)
			if err != nil {
				return err
			}
			ended := target.Observe(ctx, vm.Name)
			_, err = h.call(ctx, hostvm.Request{Operation: hostvm.OpPowerOn, Tag: tag, VMs: []target.VM{vm}, Identity: &identity})
			ended(err)
			return err
		})
	})
}

// PowerOffVMs kills all processes of VMs.
func (t *Target) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := tag.Check(); err != nil {
		return err
	}
	return t.onVMs(ctx, vms, hostvm.Request{Operation: hostvm.OpPowerOff, Tag: tag})
}

// SnapshotVMs copies the disks of VMs into their folders.
func (t *Target) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	if err := tag.Check(); err != nil {
		return err
	}
	return t.onVMs(ctx, vms, hostvm.Request{Operation: hostvm.OpSnapshot, Tag: tag, Name: name})
}

// AddressOf returns the address that the VM was given; see target.Addresser.
func (t *Target) AddressOf(_ context.Context, vm target.VM) (string, error) {
	return target.FirstAddress(vm)
}

// DialAgent connects to the agent of a VM with mutual authentication.
func (t *Target) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	h, err := t.host(vm.NodeID)
	if err != nil {
		return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
	}
	t.mu.Lock()
	tag, known := t.tags[vm.ID]
	t.mu.Unlock()
	if !known || t.options.Authority == nil {
		return nil, fmt.Errorf("dial agent of vm %q: this program did not start it", vm.Name)
	}
	raw, err := h.dial(ctx, tag, vm)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, t.options.Authority.Controller(vm.Name))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
	}
	return conn, nil
}

// Ready returns nil if all hosts answer.
func (t *Target) Ready(ctx context.Context) error {
	return t.onHosts(func(_ int, h *host) error {
		_, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
		return err
	})
}

// HostUp returns nil if the host answers.
func (t *Target) HostUp(ctx context.Context, nodeID string) error {
	h, err := t.host(nodeID)
	if err == nil {
		_, err = h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
	}
	return err
}

// SampleNodes reads how busy the hosts are. A host that does not answer has no samples.
func (t *Target) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	found := make([][]target.NodeSample, len(t.hosts))
	err := t.onHosts(func(i int, h *host) error {
		reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpSample})
		found[i] = reply.Samples
		for k := range found[i] {
			found[i][k].At = time.Now() // the clock of a host may be wrong
		}
		return err
	})
	samples := slices.Concat(found...)
	if len(samples) > 0 {
		return samples, nil
	}
	return nil, err
}

// Inventory queries all hosts.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	infos := make([]*hostvm.Info, len(t.hosts))
	err := t.onHosts(func(i int, h *host) error {
		reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
		if err == nil && reply.Info == nil {
			err = fmt.Errorf("host %q did not report its identity", h.address.Name)
		}
		infos[i] = reply.Info
		return err
	})
	if err != nil {
		return target.Inventory{}, err
	}
	inventory := target.Inventory{
		Provider: "ssh", Name: t.config.Name, AnyTemplate: true, Overcommits: true, PowerAllowed: t.config.Allow.NodePower,
		Facts: slices.Clone(t.config.Facts), Simulates: simulates(), Replication: t.config.Replication,
		Logins: t.logins(),
	}
	boots := map[string][]string{}
	for i, h := range t.hosts {
		info := infos[i]
		node := h.node
		node.CPUs, node.RAMBytes = info.CPUs, info.RAMBytes
		inventory.Nodes = append(inventory.Nodes, node)
		// VMs are spread evenly, so that the fullest host is the limit; plans are compared with the sum over hosts.
		if i == 0 || info.FreeBytes*int64(len(t.hosts)) < inventory.FreeBytes {
			inventory.FreeBytes = info.FreeBytes * int64(len(t.hosts))
		}
		inventory.TotalBytes += info.TotalBytes
		for _, f := range info.Facts {
			inventory.Facts = append(inventory.Facts, target.Fact{Name: fmt.Sprintf("%s of %s", f.Name, node.Name), Value: textio.Line(f.Value)})
		}
		inventory.Facts = append(inventory.Facts, target.Fact{Name: "VMs of " + node.Name, Value: textio.Line(info.Folder)})
		boots[info.Boot] = append(boots[info.Boot], node.Name)
	}
	for _, boot := range slices.Sorted(maps.Keys(boots)) {
		if names := boots[boot]; boot != "" && len(names) > 1 {
			inventory.Facts = append(inventory.Facts, target.Fact{
				Name: "one machine", Value: strings.Join(names, ", ") + " are the same machine and share its CPUs and disks",
			})
		}
	}
	return inventory, nil
}

func simulates() map[target.Capability]string {
	return map[target.Capability]string{
		target.CapVMPower: "a VM is a process of its host: power off kills it, and what it wrote stays in the host's page cache",
		target.CapSnapshot: "copies of the disk files, by reflink where the file system can; while a VM runs they are taken file " +
			"by file and not at one instant",
		target.CapClone: "copies of the disk files, linked or not; on the host of the source blocks are shared where the file system " +
			"can, to other hosts they travel through this machine",
		target.CapReady: "ready means that all hosts answer",
	}
}
