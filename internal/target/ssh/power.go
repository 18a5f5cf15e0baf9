package ssh

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/textio"
)

// Powered is a Target with at least one host that has a BMC.
type Powered struct {
	*Target
	*bmc.Nodes

	mu sync.Mutex
	// known are the tagged VMs of a host, by id, as last seen: a host without power cannot be queried. Without an entry,
	// this program has never seen a complete list.
	known map[stock]map[string]target.VM
	met   map[string]bool // marks of tags that this program has acted for
}

// stock identifies the objects with one tag on one host.
type stock struct{ host, mark string }

var (
	_ target.NodePower   = (*Powered)(nil)
	_ target.NodeLimiter = (*Powered)(nil)
	_ bmc.Surveyor       = (*Powered)(nil)
)

// open opens a target with power operations if its hosts have BMCs.
func open(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
	t, err := Open(ctx, c, o)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if n.BMC != nil {
			p := &Powered{Target: t, known: map[stock]map[string]target.VM{}, met: map[string]bool{}}
			p.Nodes, err = bmc.OpenNodes(ctx, c, p)
			return p, err
		}
	}
	return t, nil
}

// Inventory adds the facts from the BMCs.
func (p *Powered) Inventory(ctx context.Context) (target.Inventory, error) {
	inventory, err := p.Target.Inventory(ctx)
	inventory.Facts = append(inventory.Facts, p.Facts()...)
	return inventory, err
}

// noTag is a tag that no VM carries.
var noTag = target.Tag{Controller: "none", Run: "none", Nonce: strings.Repeat("0", 32)}

// Survey examines a host whose power is about to be cut, or will be.
func (p *Powered) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	h, err := p.host(nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
	if err != nil {
		return bmc.Survey{}, err
	}
	info := reply.Info
	if info == nil {
		return bmc.Survey{}, fmt.Errorf("host %q did not report its identity", h.address.Name)
	}
	s := bmc.Survey{Machine: bmc.Identity{UUID: info.UUID}}
	if info.Serial != "" {
		s.Machine.Serials = []string{info.Serial}
	}
	s.Controller = controllerIs(info)
	s.Redundant, s.Health, s.SameAs = p.others(ctx, h, info)
	p.Target.mu.Lock()
	var tag target.Tag
	for _, one := range p.Target.tags { // one program acts for one run
		tag = one
	}
	p.Target.mu.Unlock()
	if tag.Check() != nil {
		tag = noTag // before the run has created anything, every VM there is foreign
	}
	reply, err = h.call(ctx, hostvm.Request{Operation: hostvm.OpStrangers, Tag: tag})
	if err != nil {
		return bmc.Survey{}, err
	}
	s.VMsListed = true
	for _, name := range reply.Strangers {
		s.ForeignVMs = append(s.ForeignVMs, textio.Line(name))
	}
	return s, nil
}

// others reports whether all hosts answer except the one to be cut and those that this program switched off, and which of
// them are the same machine as that one.
func (p *Powered) others(ctx context.Context, cut *host, what *hostvm.Info) (all bmc.Answer, health string, same []string) {
	var mu sync.Mutex
	err := p.onHosts(func(_ int, h *host) error {
		if h == cut {
			return nil
		}
		return p.Answers(ctx, h.node.ID, func(ctx context.Context) error {
			reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
			if i := reply.Info; err == nil && i != nil && what.Boot != "" && machine(*i) == machine(*what) {
				mu.Lock()
				same = append(same, h.node.Name)
				mu.Unlock()
			}
			return err
		})
	})
	slices.Sort(same)
	if err != nil {
		return bmc.No, err.Error(), same
	}
	return bmc.Yes, "the other hosts that were not switched off answer", same
}

// controllerIs reports whether this program runs on a host. A host with the same boot ID and another network namespace is a
// part of this machine, such as a host of a lab. What a cut affects there is unknown: the target file has to state it.
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

// PowerOffNode cuts the power of a host. Connections to it are dropped at once, without waiting for a timeout.
func (p *Powered) PowerOffNode(ctx context.Context, nodeID string) error {
	return p.dropped(nodeID, p.Nodes.PowerOffNode(p.dropping(ctx, nodeID), nodeID))
}

// ShutdownNode requests a shutdown of a host.
func (p *Powered) ShutdownNode(ctx context.Context, nodeID string) error {
	return p.dropped(nodeID, p.Nodes.ShutdownNode(p.dropping(ctx, nodeID), nodeID))
}

// dropping drops the connection to a host as soon as its BMC reports that it is off.
func (p *Powered) dropping(ctx context.Context, nodeID string) context.Context {
	return target.WithPowerChange(ctx, func(target.PowerChange) { _ = p.dropped(nodeID, nil) })
}

// dropped drops the connection to a host whose power was cut, unless that failed.
func (p *Powered) dropped(nodeID string, failed error) error {
	if h, err := p.host(nodeID); err == nil && failed == nil {
		h.drop()
	}
	return failed
}

// offPatience bounds how long a BMC may take to report whether its host is off, if the host does not answer.
const offPatience = 30 * time.Second

// isOff reports whether a host that does not answer is known to be powered off.
func (p *Powered) isOff(ctx context.Context, nodeID string) bool {
	ctx, cancel := context.WithTimeout(ctx, offPatience)
	defer cancel()
	state, err := p.NodePowerState(ctx, nodeID)
	return err == nil && state == target.PowerOff
}

// Owned lists VMs; those on hosts without power are listed as last seen, and off. If this program has never listed such a
// host, the host must be powered on first.
func (p *Powered) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	p.meet(tag)
	silent := map[string]bool{}
	vms, err := p.owned(ctx, tag, func(h *host, err error) ([]target.VM, error) {
		if !p.isOff(ctx, h.node.ID) {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		last, told := p.known[stock{h.node.ID, tag.Mark()}]
		if !told {
			return nil, fmt.Errorf("node %q is off, and which VMs it has is not known: %w", h.node.ID, err)
		}
		silent[h.node.ID] = true
		there := slices.Collect(maps.Values(last))
		for i := range there {
			there[i].Power = target.PowerOff
		}
		return there, nil
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	for _, h := range p.hosts {
		if at := (stock{h.node.ID, tag.Mark()}); !silent[h.node.ID] && p.known[at] == nil {
			p.known[at] = map[string]target.VM{}
		}
	}
	p.mu.Unlock()
	p.note(tag, vms)
	return vms, nil
}

// meet records that this program acts for a tag, and reports whether the tag is new.
func (p *Powered) meet(tag target.Tag) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.met[tag.Mark()]
	p.met[tag.Mark()] = true
	return first
}

// note adds VMs to the known lists of hosts that are complete.
func (p *Powered) note(tag target.Tag, vms []target.VM) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, vm := range vms {
		if there := p.known[stock{vm.NodeID, tag.Mark()}]; there != nil {
			there[vm.ID] = vm
		}
	}
}

// making lets do make VMs and records them. No VM can have a tag before the tag was met. VMs that could not be made, and
// possibly not removed either, are unknown.
func (p *Powered) making(tag target.Tag, do func() ([]target.VM, error)) ([]target.VM, error) {
	if p.meet(tag) {
		p.mu.Lock()
		for _, h := range p.hosts {
			p.known[stock{h.node.ID, tag.Mark()}] = map[string]target.VM{}
		}
		p.mu.Unlock()
	}
	vms, err := do()
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		maps.DeleteFunc(p.known, func(at stock, _ map[string]target.VM) bool { return at.mark == tag.Mark() })
		return nil, err
	}
	p.note(tag, vms)
	return vms, nil
}

// Create makes VMs and records them.
func (p *Powered) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	return p.making(tag, func() ([]target.VM, error) { return p.Target.Create(ctx, tag, specs) })
}

// CloneVM copies a VM and records the clones.
func (p *Powered) CloneVM(ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool) ([]target.VM, error) {
	return p.making(tag, func() ([]target.VM, error) { return p.Target.CloneVM(ctx, tag, source, specs, linked) })
}

// Delete removes VMs and their records.
func (p *Powered) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	if err := p.Target.Delete(ctx, tag, vms); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, vm := range vms {
		delete(p.known[stock{vm.NodeID, tag.Mark()}], vm.ID)
	}
	return nil
}

// PowerOffVMs kills the processes of VMs. VMs on hosts without power are off.
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
