package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// NodePowerState tells whether a node is switched on.
func (t *Target) NodePowerState(ctx context.Context, nodeID string) (target.PowerState, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return target.PowerUnknown, context.Cause(ctx)
	case t.nodesOff[nodeID]:
		return target.PowerOff, nil
	}
	if err := t.nodeIsOn(nodeID); err != nil {
		return target.PowerUnknown, err
	}
	return target.PowerOn, nil
}

// PowerOnNode switches a node on; its VMs stay off.
func (t *Target) PowerOnNode(ctx context.Context, nodeID string) error {
	return t.switchNode(ctx, Operation{Name: "PowerOnNode", Subject: nodeID}, false)
}

// PowerOffNode cuts the power of a node and all VMs on it.
func (t *Target) PowerOffNode(ctx context.Context, nodeID string) error {
	return t.switchNode(ctx, Operation{Name: "PowerOffNode", Subject: nodeID}, true)
}

// ShutdownNode ends a node and all VMs on it.
func (t *Target) ShutdownNode(ctx context.Context, nodeID string) error {
	return t.switchNode(ctx, Operation{Name: "ShutdownNode", Subject: nodeID}, true)
}

func (t *Target) switchNode(ctx context.Context, op Operation, off bool) error {
	if !t.config.Allow.NodePower {
		return target.PowerForbidden(op.Subject)
	}
	t.mu.Lock()
	if !slices.ContainsFunc(t.nodes, func(n target.Node) bool { return n.ID == op.Subject }) {
		t.mu.Unlock()
		return fmt.Errorf("switch node %q: no such node", op.Subject)
	}
	if err := t.record(ctx, op); err != nil {
		t.mu.Unlock()
		return fmt.Errorf("switch node %q: %w", op.Subject, err)
	}
	var cycles []*cycle
	if off {
		t.nodesOff[op.Subject] = true
		cycles = t.cut(func(m *machine) bool { return m.vm.NodeID == op.Subject })
	} else {
		delete(t.nodesOff, op.Subject)
	}
	t.mu.Unlock()
	wait(cycles)
	return nil
}

// HostUp returns nil when the node is switched on.
func (t *Target) HostUp(ctx context.Context, nodeID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.nodeIsOn(nodeID)
}

// Ready returns nil when all nodes are switched on.
func (t *Target) Ready(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(t.nodesOff) == 0:
		return nil
	}
	return fmt.Errorf("nodes switched off: %s", strings.Join(slices.Sorted(maps.Keys(t.nodesOff)), ", "))
}
