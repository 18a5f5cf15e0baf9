package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/target"
)

// Nodes switches nodes and remembers, in the journal, which ones this run switched off.
type Nodes struct {
	list  []target.Node
	fleet *Fleet
}

func (n *Nodes) power() (target.NodePower, error) {
	p, ok := n.fleet.target.(target.NodePower)
	if !ok {
		return nil, errors.New("switch nodes: the target cannot")
	}
	return p, nil
}

func (n *Nodes) Off(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	return n.down(ctx, index, taking{interval.OperationNodeOff, "node.power-off", "node.powered-off", p.PowerOffNode})
}

func (n *Nodes) Shutdown(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	return n.down(ctx, index, taking{interval.OperationNodeShutdown, "node.shutdown", "node.shut-down", p.ShutdownNode})
}

// taking is a way to power off a node.
type taking struct {
	operation     interval.Operation
	before, after string // failpoints
	act           func(ctx context.Context, nodeID string) error
}

func (n *Nodes) down(ctx context.Context, index int, how taking) error {
	node := n.list[index]
	if err := n.fleet.fail.At(how.before); err != nil {
		return err
	}
	return n.fleet.journal.Intend(control.Thing{Kind: control.ThingNodeOff, Node: node.ID, Names: []string{node.Name}, Soft: how.operation == interval.OperationNodeShutdown}, func() error {
		hit := n.fleet.onNode(node.ID)
		n.fleet.notePowerCut(hit)
		n.fleet.flee(hit, node.ID)
		lost := hit
		var losing sync.WaitGroup // connections to agents may take a while to end
		defer losing.Wait()
		err := n.fleet.ops.nodeDown(ctx, loss{how.operation, node.ID, hit, func() { losing.Go(func() { n.fleet.hangUp(hit) }) }}, func(ctx context.Context) error {
			if err := how.act(ctx, node.ID); err != nil {
				return fmt.Errorf("switch off node %q: %w", node.Name, err)
			}
			// The platform may have started some of them elsewhere, before the BMC said that the power is off.
			lost = slices.DeleteFunc(n.fleet.onNode(node.ID), func(vm target.VM) bool {
				return !slices.ContainsFunc(hit, func(was target.VM) bool { return was.Name == vm.Name })
			})
			n.fleet.lose(lost)
			return nil
		})
		if err != nil {
			if diag.ExitCode(err) == diag.ExitRefused { // it did not begin
				n.fleet.stay(hit)
			}
			return err
		}
		n.fleet.update(lost, func(vm *target.VM) { vm.Power = target.PowerUnknown })
		return n.fleet.fail.At(how.after)
	})
}

func (n *Nodes) On(ctx context.Context, index int) error {
	p, err := n.power()
	if err != nil {
		return err
	}
	node := n.list[index]
	if err := n.fleet.fail.At("node.power-on"); err != nil {
		return err
	}
	on := func(ctx context.Context) error { return p.PowerOnNode(ctx, node.ID) }
	if err := n.fleet.ops.nodeUp(ctx, n.fleet.target, node.ID, on); err != nil {
		return fmt.Errorf("power on node %q: %w", node.Name, err)
	}
	n.fleet.restored(node.ID)
	if err := n.fleet.fail.At("node.powered-on"); err != nil {
		return err
	}
	if !slices.Contains(n.SwitchedOff(), index) {
		return nil
	}
	return n.fleet.journal.Undone(control.Thing{Kind: control.ThingNodeOff, Node: node.ID})
}

// Maintain takes a node out of use, or puts it into use again. The platform may move VMs of the run meanwhile.
func (n *Nodes) Maintain(ctx context.Context, index int, enter bool) error {
	m, ok := n.fleet.target.(target.Maintainer)
	if !ok {
		return errors.New("put nodes into maintenance: the target cannot")
	}
	node := n.list[index]
	act, what := m.ExitMaintenance, "put node %q into use: %w"
	if enter {
		act, what = m.EnterMaintenance, "put node %q into maintenance: %w"
		n.fleet.flee(n.fleet.onNode(node.ID), node.ID)
	}
	err := act(ctx, node.ID)
	n.fleet.look(ctx)
	if err != nil {
		return fmt.Errorf(what, node.Name, err)
	}
	if !enter {
		n.fleet.restored(node.ID)
	}
	return nil
}

func (n *Nodes) State(ctx context.Context, index int) (target.PowerState, error) {
	p, err := n.power()
	if err != nil {
		return target.PowerUnknown, err
	}
	return p.NodePowerState(ctx, n.list[index].ID)
}

func (n *Nodes) SwitchedOff() []int {
	var out []int
	for _, t := range n.fleet.journal.Left() {
		if t.Kind != control.ThingNodeOff {
			continue
		}
		if i := slices.IndexFunc(n.list, func(node target.Node) bool { return node.ID == t.Node }); i >= 0 {
			out = append(out, i)
		}
	}
	return out
}
