package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

// Powered is a Target of which at least one host has a BMC.
type Powered struct {
	*Target
	*bmc.Nodes

	mu sync.Mutex
	// known are the VMs as they were last seen, by id: a host without power cannot be asked.
	known map[string]target.VM
}

var (
	_ target.NodePower   = (*Powered)(nil)
	_ target.NodeLimiter = (*Powered)(nil)
	_ bmc.Surveyor       = (*Target)(nil)
)

// open opens a target with what its hosts have.
func open(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
	t, err := Open(ctx, c, o)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if n.BMC != nil {
			nodes, err := bmc.OpenNodes(ctx, c, t)
			return &Powered{Target: t, Nodes: nodes, known: map[string]target.VM{}}, err
		}
	}
	return t, nil
}

// Inventory adds what the BMCs have to say.
func (p *Powered) Inventory(ctx context.Context) (target.Inventory, error) {
	inventory, err := p.Target.Inventory(ctx)
	inventory.Facts = append(inventory.Facts, p.Facts()...)
	return inventory, err
}

// Survey looks at a host whose power is about to be cut.
func (t *Target) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	h, err := t.host(nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
	if err != nil {
		return bmc.Survey{}, err
	}
	info := reply.Info
	s := bmc.Survey{Machine: bmc.Identity{UUID: info.UUID}, Redundant: bmc.Yes, Health: "all hosts answer"}
	if info.Serial != "" {
		s.Machine.Serials = []string{info.Serial}
	}
	s.Controller = controllerIs(info)
	if err := t.Ready(ctx); err != nil {
		s.Redundant, s.Health = bmc.No, err.Error()
	}
	t.mu.Lock()
	var tag target.Tag
	for _, one := range t.tags { // one program acts for one run
		tag = one
	}
	t.mu.Unlock()
	if tag.Check() == nil {
		reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpStrangers, Tag: tag})
		if err != nil {
			return bmc.Survey{}, err
		}
		s.VMsListed = true
		for _, name := range reply.Strangers {
			s.ForeignVMs = append(s.ForeignVMs, sshlink.Printable(name))
		}
	}
	return s, nil
}

// controllerIs tells whether this program runs on a host. One with the same start of the system and another network is a
// part of this machine, such as a host of a lab, and nobody can tell what a cut comes to: its owner has to say it.
func controllerIs(info *hostvm.Info) bmc.Answer {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, failed := os.Readlink("/proc/self/ns/net")
	switch {
	case err != nil || failed != nil || info.Boot == "" || info.Network == "":
		return bmc.Unknown
	case strings.TrimSpace(string(boot)) != info.Boot:
		return bmc.No
	case network == info.Network:
		return bmc.Yes
	}
	return bmc.Unknown
}

// PowerOffNode cuts the power of a host. What was connected to it is forgotten at once, not when a time limit has passed.
func (p *Powered) PowerOffNode(ctx context.Context, nodeID string) error {
	err := p.Nodes.PowerOffNode(ctx, nodeID)
	return errors.Join(err, p.drop(nodeID, err))
}

// ShutdownNode asks a host to stop.
func (p *Powered) ShutdownNode(ctx context.Context, nodeID string) error {
	err := p.Nodes.ShutdownNode(ctx, nodeID)
	return errors.Join(err, p.drop(nodeID, err))
}

func (p *Powered) drop(nodeID string, failed error) error {
	h, err := p.host(nodeID)
	if err != nil || failed != nil {
		return nil // the failure is told
	}
	h.drop()
	return nil
}

// offPatience bounds how long a BMC may take to say whether its host is off, when that does not answer.
const offPatience = 30 * time.Second

// isOff tells whether a host that does not answer is known to have no power.
func (p *Powered) isOff(ctx context.Context, nodeID string) bool {
	ctx, cancel := context.WithTimeout(ctx, offPatience)
	defer cancel()
	state, err := p.NodePowerState(ctx, nodeID)
	return err == nil && state == target.PowerOff
}

// Owned lists VMs; those on hosts without power as they were last seen, and off.
func (p *Powered) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	vms, err := p.owned(ctx, tag, func(h *host, err error) ([]target.VM, error) {
		if !p.isOff(ctx, h.node.ID) {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		var there []target.VM
		for _, vm := range p.known {
			if vm.NodeID == h.node.ID {
				vm.Power = target.PowerOff
				there = append(there, vm)
			}
		}
		return there, nil
	})
	p.note(vms)
	return vms, err
}

func (p *Powered) note(vms []target.VM) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, vm := range vms {
		p.known[vm.ID] = vm
	}
}

// Create makes VMs and remembers them.
func (p *Powered) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	vms, err := p.Target.Create(ctx, tag, specs)
	p.note(vms)
	return vms, err
}

// CloneVM copies a VM and remembers the clones.
func (p *Powered) CloneVM(ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool) ([]target.VM, error) {
	vms, err := p.Target.CloneVM(ctx, tag, source, specs, linked)
	p.note(vms)
	return vms, err
}

// Delete removes VMs and forgets them.
func (p *Powered) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := p.Target.Delete(ctx, tag, vms); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, vm := range vms {
		delete(p.known, vm.ID)
	}
	return nil
}

// PowerOffVMs kills what runs in VMs. Those on hosts without power are off.
func (p *Powered) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	err := p.Target.PowerOffVMs(ctx, tag, vms)
	if err == nil {
		return nil
	}
	var running []target.VM
	off := map[string]bool{}
	for _, vm := range vms {
		if _, asked := off[vm.NodeID]; !asked {
			off[vm.NodeID] = p.isOff(ctx, vm.NodeID)
		}
		if !off[vm.NodeID] {
			running = append(running, vm)
		}
	}
	if len(running) == len(vms) {
		return err
	}
	if err := p.Target.PowerOffVMs(ctx, tag, running); err != nil {
		return fmt.Errorf("power off the VMs of the other hosts: %w", err)
	}
	return nil
}
