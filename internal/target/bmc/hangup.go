package bmc

import (
	"context"

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
	err := act(target.WithPowerChange(ctx, func(target.PowerChange) { h.HangUp(lost, nodeID) }), nodeID)
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
