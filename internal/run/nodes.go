package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/target"
)

// nodes switches nodes and remembers, in the journal, which ones this run switched off.
type nodes struct {
	list  []target.Node
	fleet *fleet
}

func (n *nodes) power() (target.NodePower, error) {
	p, ok := n.fleet.target.(target.NodePower)
	if !ok {
		return nil, errors.New("switch nodes: the target cannot")
	}
	return p, nil
}

func (n *nodes) Off(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	return n.down(index, interval.OperationNodeOff, "node.power-off", "node.powered-off", func(id string) error { return p.PowerOffNode(ctx, id) })
}

func (n *nodes) Shutdown(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	return n.down(index, interval.OperationNodeShutdown, "node.shutdown", "node.shut-down", func(id string) error { return p.ShutdownNode(ctx, id) })
}

func (n *nodes) down(index int, op interval.Operation, before, after string, act func(id string) error) error {
	node := n.list[index]
	if err := n.fleet.fail.at(before); err != nil {
		return err
	}
	return n.fleet.journal.intend(Thing{Kind: ThingNodeOff, Node: node.ID}, func() error {
		hit := n.fleet.onNode(node.ID)
		n.fleet.cut(hit)
		n.fleet.flee(hit, node.ID)
		err := n.fleet.ops.nodeDown(op, node.ID, hit, func() error {
			if err := act(node.ID); err != nil {
				return fmt.Errorf("switch off node %q: %w", node.Name, err)
			}
			n.fleet.lose(hit)
			return nil
		})
		if err != nil {
			if diag.ExitCode(err) == diag.ExitRefused { // it was not begun
				n.fleet.stay(hit)
			}
			return err
		}
		n.fleet.update(hit, func(vm *target.VM) { vm.Power = target.PowerUnknown })
		return n.fleet.fail.at(after)
	})
}

func (n *nodes) On(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	node := n.list[index]
	if err := n.fleet.fail.at("node.power-on"); err != nil {
		return err
	}
	on := func() error { return p.PowerOnNode(ctx, node.ID) }
	if err := n.fleet.ops.nodeUp(n.fleet.target, node.ID, on); err != nil {
		return fmt.Errorf("power on node %q: %w", node.Name, err)
	}
	n.fleet.restored(node.ID)
	if err := n.fleet.fail.at("node.powered-on"); err != nil {
		return err
	}
	if !slices.Contains(n.SwitchedOff(), index) {
		return nil
	}
	return n.fleet.journal.undone(Thing{Kind: ThingNodeOff, Node: node.ID})
}

func (n *nodes) State(ctx context.Context, index int) (target.PowerState, error) {
	p, err := n.power()
	if err != nil {
		return target.PowerUnknown, err
	}
	return p.NodePowerState(ctx, n.list[index].ID)
}

func (n *nodes) SwitchedOff() []int {
	var out []int
	for _, t := range n.fleet.journal.Left() {
		if t.Kind != ThingNodeOff {
			continue
		}
		if i := slices.IndexFunc(n.list, func(node target.Node) bool { return node.ID == t.Node }); i >= 0 {
			out = append(out, i)
		}
	}
	return out
}
