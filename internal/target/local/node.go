package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// nodes are the virtual nodes.
type nodes struct {
	store      *store
	list       []target.Node
	switchable bool // the owner allows power operations

	mu  sync.Mutex
	off map[string]bool
}

// check returns nil if the node exists and its power is on.
func (n *nodes) check(id string) error {
	switch state, err := n.NodePowerState(context.Background(), id); {
	case err != nil:
		return err
	case state != target.PowerOn:
		return fmt.Errorf("node %q is switched off", id)
	}
	return nil
}

// MigrateVMs moves VMs to another node. Their processes keep running unchanged: migration is simulated.
func (t *Target) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	if err := t.check(nodeID); err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	return t.each(ctx, "migrate", tag, vms, func(m *machine) error {
		r := m.record
		r.VM.NodeID = nodeID
		if err := t.machines.store.writeRecord(m.id, r); err != nil {
			return err
		}
		m.record = r
		t.meter.moved(m)
		return nil
	})
}

// NodePowerState reports whether a node is switched on.
func (n *nodes) NodePowerState(_ context.Context, nodeID string) (target.PowerState, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !slices.ContainsFunc(n.list, func(o target.Node) bool { return o.ID == nodeID }):
		return target.PowerUnknown, fmt.Errorf("find node %q: no such node", nodeID)
	case n.off[nodeID]:
		return target.PowerOff, nil
	}
	return target.PowerOn, nil
}

// PowerOnNode switches a node on. Its VMs stay off until they are started.
func (n *nodes) PowerOnNode(_ context.Context, nodeID string) error {
	return n.switchNode(nodeID, false)
}

// PowerOffNode kills all VMs of a node and prevents their start until the node is on again.
func (t *Target) PowerOffNode(_ context.Context, nodeID string) error {
	if err := t.switchNode(nodeID, true); err != nil {
		return err
	}
	t.killNode(nodeID)
	return nil
}

// shutdownMax is how long the VMs of a node may take to end when it is shut down.
const shutdownMax = 10 * time.Second

// ShutdownNode signals the VMs of a node to end, kills those that do not, and switches the node off.
func (t *Target) ShutdownNode(ctx context.Context, nodeID string) error {
	if err := t.switchNode(nodeID, true); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, shutdownMax)
	defer cancel()
	for _, m := range t.on(nodeID) {
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
	return context.Cause(ctx)
}

// switchNode records that a node is off or on, also for programs that open this target after a crash.
func (n *nodes) switchNode(nodeID string, off bool) error {
	if !n.switchable {
		return target.PowerForbidden(nodeID)
	}
	if _, err := n.NodePowerState(context.Background(), nodeID); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := maps.Clone(n.off)
	if off {
		all[nodeID] = true
	} else {
		delete(all, nodeID)
	}
	if err := n.store.writeNodesOff(all); err != nil {
		return fmt.Errorf("switch node %q: %w", nodeID, err)
	}
	n.off = all
	return nil
}

func (t *Target) killNode(nodeID string) {
	list := t.on(nodeID)
	t.killAll(list)
	sweep(list)
}

// Ready returns nil if all nodes are switched on.
func (n *nodes) Ready(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.off) == 0 {
		return nil
	}
	return fmt.Errorf("nodes switched off: %s", strings.Join(slices.Sorted(maps.Keys(n.off)), ", "))
}
