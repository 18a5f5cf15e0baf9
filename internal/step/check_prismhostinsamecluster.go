package step

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

var checkPrismHostInSameCluster = run.Kind{
	Name:    "check.PrismHostInSameCluster",
	Summary: "Check that a node belongs to the Nutanix cluster.",
	Doc:     "Only on Nutanix. The node is given by its index.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.PrismHostInSameCluster:
      node_index: 0
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() run.Step { return new(prismHostInSameCluster) },
}

type prismHostInSameCluster struct {
	Node     int  `arg:"node_index,required" doc:"Index of the node."`
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *prismHostInSameCluster) Check(v *run.View, problems *run.Problems) {
	checkNodeIndex("node_index", s.Node, v, problems)
	checkProvider(v, problems, "check.PrismHostInSameCluster", "nutanix")
}

func (s *prismHostInSameCluster) Run(ctx context.Context, env *run.Env) error {
	want := nodeAt(s.Node, env.Plan.Target.Nodes)
	inventory, err := env.Target.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("check node %q: %w", want.Name, err)
	}
	if !slices.ContainsFunc(inventory.Nodes, func(n target.Node) bool { return n.ID == want.ID }) {
		return fmt.Errorf("check node %q: it is no node of the target any more", want.Name)
	}
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, s.Annotate, "%s belongs to the cluster", want.Name)
	return nil
}
