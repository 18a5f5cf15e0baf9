package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var nodesEnterMaintenance = verb.Kind{
	Name:    "nodes.EnterMaintenance",
	Summary: "Take nodes out of use in an orderly way, as for an upgrade.",
	Doc: "One node after the other: the platform moves the VMs from it (maintenance mode of vSphere and AHV) or evicts them (drain in " +
		"Kubernetes), those of other users too. The step ends when the last node is empty. At the end of the run at the latest the nodes " +
		"are in use again. The target file has to allow it with allow: {maintenance: true}.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 5
      async: True
  - nodes.EnterMaintenance:
      nodes: 0
  - nodes.ExitMaintenance:
      nodes: 0
  - workload.Wait:
      workload_name: Load
`,
	Needs:          []target.Capability{target.CapMaintenance},
	MaintainsNodes: true,
	New:            func() verb.Step { return &maintainNodes{doing: "Taking", done: "out of use", enter: true} },
}

var nodesExitMaintenance = verb.Kind{
	Name:           "nodes.ExitMaintenance",
	Summary:        "Put nodes in maintenance into use again.",
	Doc:            "VMs that were moved away stay where they are, unless the platform balances them.",
	Example:        nodesEnterMaintenance.Example,
	Needs:          []target.Capability{target.CapMaintenance},
	MaintainsNodes: true,
	New:            func() verb.Step { return &maintainNodes{doing: "Putting", done: "into use again"} },
}

type maintainNodes struct {
	Nodes    verb.Nodes `arg:"nodes,required" doc:"Which nodes, as a slice: 0, :2, n-1, all."`
	Annotate bool       `arg:"annotate" default:"true" doc:"Mark the moments on charts."`

	doing, done string // of its marks
	enter       bool
}

func (s *maintainNodes) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: nodeNames(s.Nodes, v.Inventory.Nodes), MovesAll: s.enter}
}

func (s *maintainNodes) Run(ctx context.Context, env *verb.Env) error {
	for _, i := range nodeIndexes(s.Nodes, len(env.Plan.Target.Nodes)) {
		name := env.Plan.Target.Nodes[i].Name
		env.Mark(s.Annotate, "%s %s %s", s.doing, name, s.done)
		if err := env.Maintenance(ctx, i, s.enter); err != nil {
			return err
		}
		env.Mark(s.Annotate, "%s is %s", name, map[bool]string{true: "in maintenance", false: "in use"}[s.enter])
	}
	return nil
}

// Undo puts nodes that this step took out of use into use again.
func (s *maintainNodes) Undo(ctx context.Context, env *verb.Env) error {
	if !s.enter {
		return nil
	}
	for _, i := range nodeIndexes(s.Nodes, len(env.Plan.Target.Nodes)) {
		if err := env.Maintenance(ctx, i, false); err != nil {
			return err
		}
	}
	return nil
}
