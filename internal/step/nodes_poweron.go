package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesPowerOn = verb.Kind{
	Name:    "nodes.PowerOn",
	Summary: "Power on nodes through their BMC.",
	Doc: "The commands go to all nodes at the same time. Unless wait_secs is 0 the step then waits until the nodes are on " +
		"and the cluster, where it can tell, is ready. VMs do not come back by themselves on every target: " +
		"vm_group.PowerOn starts them.",
	Example: example.Idle + `setup:
  - cluster.CleanUp: {}
run:
  - nodes.PowerOff:
      nodes: 0
  - nodes.PowerOn:
      nodes: 0
`,
	Needs:         nodeNeeds,
	SwitchesNodes: true,
	New:           func() verb.Step { return new(powerOnNodes) },
}

type powerOnNodes struct {
	Nodes    verb.Nodes    `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"2400" doc:"How long they may take to be ready; 0 does not wait."`
	Annotate bool          `arg:"annotate" default:"true" doc:"Mark the moments on charts."`
}

func (s *powerOnNodes) Check(v *verb.View, problems *verb.Problems) { checkBMC(s.Nodes, v, problems) }

func (s *powerOnNodes) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes), PowersOn: nodeIndexes(s.Nodes, len(v.Inventory.Nodes))}
}

func (s *powerOnNodes) Run(ctx context.Context, env *verb.Env) error {
	return switchNodes(ctx, env, nodeSwitch{s.Nodes, target.PowerOn, s.Wait, s.Annotate, "Powering on"}, env.Nodes.On)
}
