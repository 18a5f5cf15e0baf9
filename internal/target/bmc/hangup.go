package bmc

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// HangingUp are Nodes whose VMs have agents on a network: it ends the connections to those on a node that loses its power, which
// would otherwise stay open. An agent that still runs is dialled again.
type HangingUp struct {
	*Nodes
	// Usable returns why the node must not lose its power, whatever its BMC says, or why the target cannot be used any more.
	Usable func(ctx context.Context, nodeID string) error
	// Running lists the VMs on a node, by id; HangUp ends the connections to them.
	Running func(ctx context.Context, nodeID string) []string
	HangUp  func(vms []string, nodeID string)
	// Elsewhere means that the platform may start the VMs on other nodes, even before the BMC says that the power is off.
	Elsewhere bool
}

var (
	_ target.NodePower   = (*HangingUp)(nil)
	_ target.NodeLimiter = (*HangingUp)(nil)
)

// PowerOffNode cuts the power of a node, unless there are objections.
func (h *HangingUp) PowerOffNode(ctx context.Context, nodeID string) error {
	return h.take(ctx, nodeID, h.Nodes.PowerOffNode)
}

// ShutdownNode requests a shutdown of a node's system.
func (h *HangingUp) ShutdownNode(ctx context.Context, nodeID string) error {
	return h.take(ctx, nodeID, h.Nodes.ShutdownNode)
}

// take lets act take the power of a node, with all checks.
func (h *HangingUp) take(ctx context.Context, nodeID string, act func(context.Context, string) error) error {
	if err := h.Usable(ctx, nodeID); err != nil {
		return err
	}
	lost := h.Running(ctx, nodeID)
	var seen atomic.Bool
	err := act(target.WithPowerChange(ctx, func(target.PowerChange) {
		seen.Store(true)
		h.HangUp(lost, nodeID)
	}), nodeID)
	if h.Elsewhere && seen.Load() {
		still := h.Running(ctx, nodeID)
		lost = slices.DeleteFunc(lost, func(vm string) bool { return !slices.Contains(still, vm) })
	}
	if err == nil || diag.ExitCode(err) != diag.ExitRefused { // a refused one was not begun
		h.HangUp(lost, nodeID)
	}
	return err
}

// Off reports whether a node is known to be switched off. n may be nil: no node has a BMC.
func (n *Nodes) Off(ctx context.Context, nodeID string) bool {
	if n == nil || nodeID == "" {
		return false
	}
	state, err := n.NodePowerState(ctx, nodeID)
	return err == nil && state == target.PowerOff
}
