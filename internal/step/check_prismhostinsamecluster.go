package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkPrismHostInSameCluster = verb.Kind{
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
	New:   func() verb.Step { return new(prismHostInSameCluster) },
}

type prismHostInSameCluster struct {
	Node     int  `arg:"node_index,required" doc:"Index of the node."`
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *prismHostInSameCluster) Check(v *verb.View, problems *verb.Problems) {
	checkNodeIndex("node_index", s.Node, v, problems)
	checkProvider(v, problems, "check.PrismHostInSameCluster", "nutanix")
}

func (s *prismHostInSameCluster) Run(ctx context.Context, env *verb.Env) error {
	return nodePresent(ctx, env, s.Node, s.Annotate, "%s belongs to the cluster")
}
