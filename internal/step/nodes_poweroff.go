package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesPowerOff = verb.Kind{
	Name:    "nodes.PowerOff",
	Summary: "Cut the power of nodes through their BMC, without a shutdown.",
	Doc: "The commands go to all nodes at the same time. Unless wait_secs is 0 the step then waits until the nodes are off. " +
		"Loads on VMs of these nodes end; that is annotated and does not fail the run. In any case the nodes are powered " +
		"on again at the end of the run, before anything else is undone.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 5
      async: True
  - nodes.PowerOff:
      nodes: n-1
  - workload.Wait:
      workload_name: Load
`,
	Needs:         nodeNeeds,
	SwitchesNodes: true,
	New:           func() verb.Step { return &powerOffNodes{doing: "Cutting the power of"} },
}

type powerOffNodes struct {
	Nodes    verb.Nodes    `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"2400" doc:"How long they may take to be off; 0 does not wait."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark the moments on charts."`

	doing    string // its text in marks
	graceful bool   // the operating system of the node shuts down by itself
}

func (s *powerOffNodes) Check(v *verb.View, problems *verb.Problems) { checkBMC(s.Nodes, v, problems) }

func (s *powerOffNodes) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes), PowersOff: nodeIndexes(s.Nodes, len(v.Inventory.Nodes))}
}

func (s *powerOffNodes) Run(ctx context.Context, env *verb.Env) error {
	off := env.Nodes.Off
	if s.graceful {
		off = env.Nodes.Shutdown
	}
	return switchNodes(ctx, env, nodeSwitch{s.Nodes, target.PowerOff, s.Wait, s.Annotate, s.doing}, off)
}
