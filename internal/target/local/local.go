// Package local is the target that every machine has: virtual nodes on which a VM is an agent process with files as data
// disks. It needs no installation.
//
// Real here: processes that start and die, data that is copied, bytes that go to files, an address for each VM.
// Simulated, and listed in Inventory.Simulates: nodes, migration, power of nodes.
//
//	Create ──▶ owner file, folder, sparse disk files        (store.go)
//	PowerOnVMs ──▶ process with one end of a socket pair     (process.go); DialAgent hands out the other end
//	PowerOffVMs ──▶ SIGKILL to all processes of the VM       (kill.go)
//
// The processes of a Target live as long as the Target: they end when it is closed, and when this program dies for any
// reason. The folders stay until Delete.
package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Target is this machine, divided into virtual nodes.
type Target struct {
	*nodes    // virtual nodes and their power
	*machines // the VMs
	*launcher // their processes
	*meter    // what nodes use; nil where VMs are detached
	config    target.Config
	leases    string // folder of leases; "" except in tests
	address   *addressPool
	// detached is set if VMs outlive this Target, else nil.
	detached *Detached
}

var (
	_ target.Target       = (*Target)(nil)
	_ target.AgentDialer  = (*Target)(nil)
	_ target.VMPower      = (*Target)(nil)
	_ target.Cloner       = (*Target)(nil)
	_ target.Snapshotter  = (*Target)(nil)
	_ target.Migrator     = (*Target)(nil)
	_ target.NodePower    = (*Target)(nil)
	_ target.ReadyChecker = (*Target)(nil)
	_ target.NodeMeter    = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:       "local",
		Summary:    "this machine: virtual nodes, agent processes as VMs, files as disks",
		MakesNodes: true,
		Open: func(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
			return Open(ctx, c, o)
		},
	}
}

// Open opens this machine as a target. OpenOptions.Dir is required.
func Open(_ context.Context, c target.Config, o target.OpenOptions) (*Target, error) {
	list, err := c.MakeNodes("local")
	if err != nil {
		return nil, err
	}
	groups, err := cgroupsFor(c.Options)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, &diag.Error{Code: "target-no-directory", Message: "open local target: no directory for VMs"}
	}
	if len(o.AgentCommand) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("open local target: find this program: %w", err)
		}
		o.AgentCommand = []string{self, "__agent"}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open local target: %w", err)
	}
	s, err := openStore(dir)
	if err != nil {
		return nil, fmt.Errorf("open local target: %w", err)
	}
	off, err := s.readNodesOff()
	if err != nil {
		return nil, fmt.Errorf("open local target: %w", err)
	}
	for i := range list {
		list[i].CPUs, list[i].RAMBytes = runtime.NumCPU(), machineRAM()
	}
	t := newTarget(s, groups, list, o.AgentCommand)
	t.config, t.leases, t.nodes.off, t.nodes.switchable = c, o.Leases, off, c.Allow.NodePower
	t.meter = newMeter(list, time.Now())
	t.launcher.meter = t.meter
	return t, nil
}

func newTarget(s *store, groups *cgroups, list []target.Node, agentCommand []string) *Target {
	return &Target{
		nodes:    &nodes{store: s, list: list, off: map[string]bool{}},
		machines: &machines{store: s, all: map[string]*machine{}},
		launcher: &launcher{command: agentCommand, store: s, spawner: &spawner{}, groups: groups}, address: newAddressPool(),
	}
}

// cgroupsFor reads the options of the target file. "cgroups: off" does not use this machine's control groups.
func cgroupsFor(options map[string]string) (*cgroups, error) {
	for name := range options {
		if name != "cgroups" {
			return nil, &diag.Error{
				Code: "target-unknown-option", Exit: diag.ExitData, Message: fmt.Sprintf("open local target: unknown option %q", name),
				Hint: "known: cgroups",
			}
		}
	}
	switch options["cgroups"] {
	case "", "auto":
		return openCgroups(), nil
	case "off", "false":
		return &cgroups{reason: "switched off in the target file"}, nil
	}
	return nil, &diag.Error{
		Code: "target-unknown-option", Exit: diag.ExitData,
		Message: fmt.Sprintf("open local target: option cgroups is %q, want auto or off", options["cgroups"]),
	}
}

// Inventory describes the machine.
func (t *Target) Inventory(context.Context) (target.Inventory, error) {
	dir, err := t.machines.store.existing()
	if err != nil {
		return target.Inventory{}, fmt.Errorf("read free space: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return target.Inventory{}, fmt.Errorf("read free space of %q: %w", dir, err)
	}
	name := t.config.Name
	if name == "" {
		name = "local"
	}
	inventory := target.Inventory{
		Provider: "local", Name: name, Nodes: slices.Clone(t.nodes.list), AnyTemplate: true, Overcommits: true,
		// As df counts: blocks reserved for root are neither free nor used, and not part of the total.
		FreeBytes: int64(fs.Bavail) * fs.Bsize, TotalBytes: int64(fs.Blocks-fs.Bfree+fs.Bavail) * fs.Bsize,
		PowerAllowed: t.config.Allow.NodePower, Simulates: simulates(), Replication: t.config.Replication,
	}
	inventory.Facts = append(inventory.Facts, t.config.Facts...)
	inventory.Facts = append(inventory.Facts,
		target.Fact{Name: "VM limits", Value: t.groups.describe()},
		target.Fact{Name: "disk copies", Value: describeCopies(dir)},
	)
	return inventory, nil
}

func simulates() map[target.Capability]string {
	return map[target.Capability]string{
		target.CapMigrate:   "the VM's process keeps running where it is; only the name of its node changes",
		target.CapNodePower: "power-off kills the processes of the VMs on a node; disks and network are unaffected",
		target.CapSnapshot: "copies of the disk files, by reflink where the file system can; while a VM runs they are " +
			"taken file by file and not at one instant",
		target.CapReady:     "ready means that no node is switched off",
		target.CapNodeMeter: "CPU time and connection bytes of the node's own VM processes",
	}
}

// Close ends the processes of all VMs that this Target started and waits for them. Their folders stay.
func (t *Target) Close() error {
	list := t.machines.close()
	t.killAll(list)
	if t.detached == nil {
		sweep(list)
	}
	t.spawner.close()
	t.address.close()
	return nil
}

// machineRAM returns the memory of this machine, 0 if it is not known.
func machineRAM() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
