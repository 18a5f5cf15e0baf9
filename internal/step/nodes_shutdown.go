package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesShutdown = verb.Kind{
	Name:    "nodes.Shutdown",
	Summary: "Ask nodes to shut down in an orderly way.",
	Doc: "The requests go to all nodes at the same time. Unless wait_secs is 0 the step then waits until the nodes are off. " +
		"Loads on VMs that are still there end; that is annotated and no failure. The nodes are powered on again at the " +
		"end of the run at the latest.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - cluster.CleanUp: {}
run:
  - nodes.Shutdown:
      nodes: 0
  - nodes.PowerOn:
      nodes: 0
`,
	Needs:         nodeNeeds,
	SwitchesNodes: true,
	New:           func() verb.Step { return new(shutdownNodes) },
}

type shutdownNodes struct {
	Nodes    verb.Nodes    `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"2400" doc:"How long they may take to be off; 0 does not wait."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark the moments on charts."`
}

func (s *shutdownNodes) Check(v *verb.View, problems *verb.Problems) { checkBMC(s.Nodes, v, problems) }

func (s *shutdownNodes) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes), PowersOff: nodeIndexes(s.Nodes, len(v.Inventory.Nodes))}
}

func (s *shutdownNodes) Run(ctx context.Context, env *verb.Env) error {
	return switchNodes(ctx, env, nodeSwitch{s.Nodes, target.PowerOff, s.Wait, s.Annotate, "Shutting down"}, env.Nodes.Shutdown)
}
