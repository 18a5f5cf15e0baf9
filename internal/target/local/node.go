package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// MigrateVMs gives VMs another node. Their processes go on as they are: migration is imitated.
func (t *Target) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	machines, err := t.resolve(tag, vms, false)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	switch _, on, err := t.node(nodeID); {
	case err != nil:
		return fmt.Errorf("migrate VMs: %w", err)
	case !on:
		return fmt.Errorf("migrate VMs: node %q is switched off", nodeID)
	}
	return t.onEach(ctx, "migrate", vms, func(i int) error {
		m := machines[i]
		m.mu.Lock()
		defer m.mu.Unlock()
		if err := t.usable(m); err != nil {
			return err
		}
		r := m.record
		r.VM.NodeID = nodeID
		if err := t.store.writeRecord(m.id, r); err != nil {
			return err
		}
		m.record = r
		t.meter.moved(m)
		return nil
	})
}

// NodePowerState tells whether a node is switched on.
func (t *Target) NodePowerState(_ context.Context, nodeID string) (target.PowerState, error) {
	_, on, err := t.node(nodeID)
	switch {
	case err != nil:
		return target.PowerUnknown, err
	case on:
		return target.PowerOn, nil
	}
	return target.PowerOff, nil
}

// PowerOnNode switches a node on. Its VMs stay off until somebody starts them.
func (t *Target) PowerOnNode(_ context.Context, nodeID string) error {
	return t.switchNode(nodeID, false)
}

// PowerOffNode kills all VMs of a node and keeps them from starting until the node is on again.
func (t *Target) PowerOffNode(_ context.Context, nodeID string) error {
	if err := t.switchNode(nodeID, true); err != nil {
		return err
	}
	t.killNode(nodeID)
	return nil
}

// shutdownWithin is how long the VMs of a node may take to end when it is asked to stop.
const shutdownWithin = 10 * time.Second

// ShutdownNode asks the VMs of a node to end, kills those that do not, and switches the node off.
func (t *Target) ShutdownNode(ctx context.Context, nodeID string) error {
	if err := t.switchNode(nodeID, true); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, shutdownWithin)
	defer cancel()
	for _, m := range t.machinesOn(nodeID) {
		m.mu.Lock()
		p := m.process
		if p != nil && p.alive() {
			_ = p.command.Process.Signal(syscall.SIGTERM)
		}
		m.mu.Unlock()
		if p == nil {
			continue
		}
		select {
		case <-p.exited:
		case <-limit.Done():
		}
	}
	t.killNode(nodeID)
	return ctx.Err()
}

// switchNode records that a node is off or on, also for a program that opens this target after a crash.
func (t *Target) switchNode(nodeID string, off bool) error {
	if !t.config.Allow.NodePower {
		return target.PowerForbidden(nodeID)
	}
	if _, _, err := t.node(nodeID); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	nodesOff := maps.Clone(t.nodesOff)
	if off {
		nodesOff[nodeID] = true
	} else {
		delete(nodesOff, nodeID)
	}
	if err := t.store.writeNodesOff(nodesOff); err != nil {
		return fmt.Errorf("switch node %q: %w", nodeID, err)
	}
	t.nodesOff = nodesOff
	return nil
}

func (t *Target) killNode(nodeID string) {
	machines := t.machinesOn(nodeID)
	for _, m := range machines {
		m.mu.Lock()
		t.killLocked(m)
		m.mu.Unlock()
	}
	t.sweep(machines)
}

func (t *Target) machinesOn(nodeID string) []*machine {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.machines))
	t.mu.Unlock()
	var on []*machine
	for _, m := range all {
		m.mu.Lock()
		if m.record.VM.NodeID == nodeID {
			on = append(on, m)
		}
		m.mu.Unlock()
	}
	return on
}

// Ready returns nil when all nodes are switched on.
func (t *Target) Ready(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nodesOff) == 0 {
		return nil
	}
	return fmt.Errorf("nodes switched off: %s", strings.Join(slices.Sorted(maps.Keys(t.nodesOff)), ", "))
}
