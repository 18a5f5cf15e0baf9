package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// NodePowerState reports whether a node is switched on.
func (c *cluster) NodePowerState(ctx context.Context, nodeID string) (target.PowerState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return target.PowerUnknown, context.Cause(ctx)
	case c.nodesOff[nodeID]:
		return target.PowerOff, nil
	}
	if err := c.nodeIsOn(nodeID); err != nil {
		return target.PowerUnknown, err
	}
	return target.PowerOn, nil
}

// PowerOnNode switches a node on; its VMs stay off.
func (c *cluster) PowerOnNode(ctx context.Context, nodeID string) error {
	return c.switchNode(ctx, Operation{Name: "PowerOnNode", Subject: nodeID}, false)
}

// PowerOffNode cuts the power of a node and all VMs on it.
func (c *cluster) PowerOffNode(ctx context.Context, nodeID string) error {
	return c.switchNode(ctx, Operation{Name: "PowerOffNode", Subject: nodeID}, true)
}

// ShutdownNode shuts down a node and all VMs on it.
func (c *cluster) ShutdownNode(ctx context.Context, nodeID string) error {
	return c.switchNode(ctx, Operation{Name: "ShutdownNode", Subject: nodeID}, true)
}

// EnterMaintenance moves the VMs of a node to the next one that is in use.
func (c *cluster) EnterMaintenance(ctx context.Context, nodeID string) error {
	return c.rest(ctx, Operation{Name: "EnterMaintenance", Subject: nodeID}, true)
}

// ExitMaintenance puts a node into use again; its VMs stay where they are.
func (c *cluster) ExitMaintenance(ctx context.Context, nodeID string) error {
	return c.rest(ctx, Operation{Name: "ExitMaintenance", Subject: nodeID}, false)
}

func (c *cluster) rest(ctx context.Context, op Operation, enter bool) error {
	if !c.config.Allow.Maintenance {
		return target.MaintenanceForbidden(op.Subject)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.nodeIsOn(op.Subject); err != nil {
		return fmt.Errorf("maintenance of node %q: %w", op.Subject, err)
	}
	if err := c.record(ctx, op); err != nil {
		return fmt.Errorf("maintenance of node %q: %w", op.Subject, err)
	}
	if !enter {
		delete(c.resting, op.Subject)
		return nil
	}
	inUse := func(n target.Node) bool { return n.ID != op.Subject && !c.resting[n.ID] && !c.nodesOff[n.ID] }
	to := slices.IndexFunc(c.nodes, inUse)
	for _, m := range c.machines {
		if m.vm.NodeID == op.Subject && m.cycle != nil {
			if to < 0 {
				return fmt.Errorf("maintenance of node %q: there is no other node for its VMs", op.Subject)
			}
			m.vm.NodeID = c.nodes[to].ID
		}
	}
	c.resting[op.Subject] = true
	return nil
}

func (c *cluster) switchNode(ctx context.Context, op Operation, off bool) error {
	if !c.config.Allow.NodePower {
		return target.PowerForbidden(op.Subject)
	}
	c.mu.Lock()
	if !slices.ContainsFunc(c.nodes, func(n target.Node) bool { return n.ID == op.Subject }) {
		c.mu.Unlock()
		return fmt.Errorf("switch node %q: no such node", op.Subject)
	}
	if err := c.record(ctx, op); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("switch node %q: %w", op.Subject, err)
	}
	var cycles []*cycle
	if off {
		c.nodesOff[op.Subject] = true
		cycles = c.cut(func(m *machine) bool { return m.vm.NodeID == op.Subject })
	} else {
		delete(c.nodesOff, op.Subject)
	}
	c.mu.Unlock()
	wait(cycles)
	return nil
}

// HostUp returns nil if the node is switched on.
func (c *cluster) HostUp(ctx context.Context, nodeID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.nodeIsOn(nodeID)
}

// Ready returns nil if all nodes are switched on.
func (c *cluster) Ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(c.nodesOff) == 0:
		return nil
	}
	return fmt.Errorf("nodes switched off: %s", strings.Join(slices.Sorted(maps.Keys(c.nodesOff)), ", "))
}

// DatastoreVisible returns nil for every node that is on: a simulated datastore is visible everywhere.
func (c *cluster) DatastoreVisible(ctx context.Context, nodeID, datastore string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.nodeIsOn(nodeID); err != nil {
		return fmt.Errorf("find datastore %q: %w", datastore, err)
	}
	return nil
}

// WriteCacheEmpty returns true: there is no cache.
func (c *cluster) WriteCacheEmpty(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return true, nil
}

// SetContainer records a change of the storage container.
func (c *cluster) SetContainer(ctx context.Context, tag target.Tag, _ target.ContainerSettings) error {
	return c.container(ctx, tag, "SetContainer")
}

// RestoreContainer records that the settings are as they were.
func (c *cluster) RestoreContainer(ctx context.Context, tag target.Tag) error {
	return c.container(ctx, tag, "RestoreContainer")
}

func (c *cluster) container(ctx context.Context, tag target.Tag, name string) error {
	if err := tag.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record(ctx, Operation{Name: name})
}
