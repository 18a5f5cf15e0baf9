package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// nodeNeeds are the capabilities of steps that switch nodes.
var nodeNeeds = []target.Capability{target.CapNodePower}

// nodePoll is how often the state of nodes is polled.
const nodePoll = time.Second

// nodeIndexes returns the indexes of a slice that Compile has checked.
func nodeIndexes(nodes verb.Nodes, count int) []int {
	indexes, err := scenario.SelectNodes(string(nodes), count)
	if err != nil {
		return nil // not compiled
	}
	return indexes
}

// checkBMC reports nodes without a BMC that could power them on again.
func checkBMC(nodes verb.Nodes, v *verb.View, problems *verb.Problems) {
	for _, i := range nodeIndexes(nodes, len(v.Inventory.Nodes)) {
		if n := v.Inventory.Nodes[i]; !n.HasBMC {
			problems.Hint("nodes", "lacks-capability", "add its BMC to the target file",
				fmt.Sprintf("node %d (%s) has no BMC that could power it on again", i, n.Name))
		}
	}
}

// nodeNames names the nodes of a slice for titles: "node-0, node-1".
func nodeNames(nodes verb.Nodes, all []target.Node) string {
	var names []string
	for _, i := range nodeIndexes(nodes, len(all)) {
		names = append(names, all[i].Name)
	}
	return strings.Join(names, ", ")
}

// eachNode acts on all nodes at the same time.
func eachNode(indexes []int, act func(index int) error) error {
	errs := make([]error, len(indexes))
	var wait sync.WaitGroup
	for k, index := range indexes {
		wait.Go(func() { errs[k] = act(index) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// switchNodes acts on all nodes of a slice at the same time and, unless wait is 0, waits until they have the state want.
func switchNodes(ctx context.Context, env *verb.Env, s nodeSwitch, act func(ctx context.Context, index int) error) error {
	indexes := nodeIndexes(s.nodes, len(env.Plan.Target.Nodes))
	gate := target.NewGate(len(indexes))
	err := eachNode(indexes, func(index int) error {
		ctx, leave := target.WithGate(ctx, gate)
		defer leave()
		env.Mark(s.mark, "%s %s", s.saying, env.Plan.Target.Nodes[index].Name)
		return act(ctx, index)
	})
	if err != nil || s.wait <= 0 {
		return err
	}
	return awaitNodes(ctx, env, s)
}

// nodeSwitch is the power operation of a step on nodes.
type nodeSwitch struct {
	nodes  verb.Nodes
	want   target.PowerState
	wait   time.Duration
	mark   bool
	saying string // announces the operation, before the node's name
}

// awaitNodes waits until the nodes have the state, and marks that they do.
func awaitNodes(ctx context.Context, env *verb.Env, s nodeSwitch) error {
	indexes := nodeIndexes(s.nodes, len(env.Plan.Target.Nodes))
	if err := waitNodes(ctx, env, indexes, s.want, s.wait); err != nil {
		return err
	}
	for _, index := range indexes {
		env.Mark(s.mark, "%s is %s", env.Plan.Target.Nodes[index].Name, s.want)
	}
	return nil
}

// waitNodes waits until all nodes have the state and, if they are to be on, the cluster reports that it is ready.
func waitNodes(ctx context.Context, env *verb.Env, indexes []int, want target.PowerState, timeout time.Duration) error {
	waiting := slices.Clone(indexes)
	reason := errors.New("not asked yet")
	err := verb.WaitFor(ctx, timeout, nodePoll, func() bool {
		waiting = slices.DeleteFunc(waiting, func(index int) bool {
			state, err := env.Nodes.State(ctx, index)
			if err == nil && state != want {
				err = fmt.Errorf("it is %s", state)
			}
			if err != nil {
				reason = fmt.Errorf("%s: %w", env.Plan.Target.Nodes[index].Name, err)
			}
			return err == nil
		})
		if len(waiting) > 0 {
			return false
		}
		if want != target.PowerOn {
			return true
		}
		err := env.Ready(ctx)
		if err != nil {
			reason = fmt.Errorf("the cluster is not ready: %w", err)
		}
		return err == nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait %v for nodes to be %s: %w", timeout, want, reason)
	}
	return err
}

// nodesWait waits for a power state of nodes.
type nodesWait struct {
	Nodes    verb.Nodes    `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"2400" doc:"How long they may take."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark the moments on charts."`

	want target.PowerState
}

func (s *nodesWait) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes)}
}

func (s *nodesWait) Run(ctx context.Context, env *verb.Env) error {
	return awaitNodes(ctx, env, nodeSwitch{nodes: s.Nodes, want: s.want, wait: s.Wait, mark: s.Annotate})
}
