package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesWaitForPowerOn = verb.Kind{
	Name:    "nodes.WaitForPowerOn",
	Summary: "Wait until nodes are on and the cluster is ready.",
	Doc:     "For nodes that were powered on with wait_secs: 0.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - cluster.CleanUp: {}
run:
  - nodes.PowerOff:
      nodes: 0
  - nodes.PowerOn:
      nodes: 0
      wait_secs: 0
  - nodes.WaitForPowerOn:
      nodes: 0
`,
	Needs: nodeNeeds,
	Waits: true,
	New:   func() verb.Step { return new(waitNodesOn) },
}

type waitNodesOn struct {
	Nodes    verb.Nodes    `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"2400" doc:"How long they may take."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark the moments on charts."`
}

func (s *waitNodesOn) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes)}
}

func (s *waitNodesOn) Run(ctx context.Context, env *verb.Env) error {
	return awaitNodes(ctx, env, nodeSwitch{nodes: s.Nodes, want: target.PowerOn, wait: s.Wait, mark: s.Annotate})
}
