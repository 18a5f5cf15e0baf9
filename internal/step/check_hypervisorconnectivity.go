package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkHypervisorConnectivity = verb.Kind{
	Name:    "check.HypervisorConnectivity",
	Summary: "Check that the hypervisor of a node answers.",
	Doc:     "The node is given by its index; the target asks its management software, which loses touch with a node whose hypervisor is gone.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.HypervisorConnectivity:
      node_index: 0
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapReady},
	New:   func() verb.Step { return new(hypervisorConnectivity) },
}

type hypervisorConnectivity struct {
	Node     int  `arg:"node_index,required" doc:"Index of the node."`
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *hypervisorConnectivity) Check(v *verb.View, problems *verb.Problems) {
	checkNodeIndex("node_index", s.Node, v, problems)
}

func (s *hypervisorConnectivity) Run(ctx context.Context, env *verb.Env) error {
	return nodePresent(ctx, env, s.Node, s.Annotate, "The hypervisor of %s answers")
}
