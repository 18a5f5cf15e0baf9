// Package check holds the checks of scenarios, check.…: steps that look at the target and change nothing.
//
//	check.go ──▶ three kinds of checks: of the cluster, of one node, of a datastore; one file for each step of a kind
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// onlyOn reports a check for another kind of target than this one. A simulated target counts as any kind.
func onlyOn(v *verb.View, problems *verb.Problems, step, provider string) {
	if provider == "" || v.Inventory.Simulated || v.Inventory.Provider == provider {
		return
	}
	problems.Hint("", "lacks-capability", "it is meant for "+provider,
		fmt.Sprintf("%s has no effect on a target of provider %q", step, v.Inventory.Provider))
}

// ready checks that the services of the target answer and are up.
func ready(ctx context.Context, env *verb.Env) error {
	checker, ok := env.Target.(target.ReadyChecker)
	if !ok {
		return errors.New("check the cluster: the target cannot tell whether it is ready")
	}
	if err := checker.Ready(ctx); err != nil {
		return fmt.Errorf("check the cluster: %w", err)
	}
	return nil
}

// clusterCheck checks that the target's services answer and are up. provider, if set, is the only kind of target that has such
// services; remark is the annotation on charts.
type clusterCheck struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`

	step, provider, remark string
}

func (s *clusterCheck) Check(v *verb.View, problems *verb.Problems) {
	onlyOn(v, problems, s.step, s.provider)
}

func (s *clusterCheck) Run(ctx context.Context, env *verb.Env) error {
	if err := ready(ctx, env); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s", s.remark)
	return nil
}

// nodeCheck is clusterCheck for one node, which the target must still have; remark has its name for %s.
type nodeCheck struct {
	Node     int  `arg:"node_index,required" doc:"Index of the node."`
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`

	step, provider, remark string
}

func (s *nodeCheck) Check(v *verb.View, problems *verb.Problems) {
	verb.CheckNodeIndex("node_index", s.Node, v, problems)
	onlyOn(v, problems, s.step, s.provider)
}

func (s *nodeCheck) Run(ctx context.Context, env *verb.Env) error {
	want := verb.NodeAt(s.Node, env.Plan.Target.Nodes)
	inventory, err := env.Target.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("check node %q: %w", want.Name, err)
	}
	if !slices.ContainsFunc(inventory.Nodes, func(n target.Node) bool { return n.ID == want.ID }) {
		return fmt.Errorf("check node %q: not in the target's inventory any more", want.Name)
	}
	if err := ready(ctx, env); err != nil {
		return err
	}
	env.Mark(s.Annotate, s.remark, want.Name)
	return nil
}

// datastoreCheck checks that a node sees a datastore.
type datastoreCheck struct {
	Datastore string `arg:"datastore_name,required" doc:"Name of the datastore."`
	Node      int    `arg:"node_index,required" doc:"Index of the node."`
	Annotate  bool   `arg:"annotate" default:"true" doc:"Mark the moment on charts."`

	step, provider string
}

func (s *datastoreCheck) Check(v *verb.View, problems *verb.Problems) {
	verb.CheckNodeIndex("node_index", s.Node, v, problems)
	onlyOn(v, problems, s.step, s.provider)
}

func (s *datastoreCheck) Run(ctx context.Context, env *verb.Env) error {
	checker, ok := env.Target.(target.DatastoreChecker)
	if !ok {
		return errors.New("check a datastore: the target cannot tell")
	}
	node := verb.NodeAt(s.Node, env.Plan.Target.Nodes)
	if err := checker.DatastoreVisible(ctx, node.ID, s.Datastore); err != nil {
		return fmt.Errorf("check that node %q sees datastore %q: %w", node.Name, s.Datastore, err)
	}
	env.Mark(s.Annotate, "%s sees datastore %q", node.Name, s.Datastore)
	return nil
}
