package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupResetGroupPlacement = verb.Kind{
	Name:    "vm_group.ResetGroupPlacement",
	Summary: "Migrate VMs of a group back to the nodes where the plan placed them.",
	Doc:     "VMs that are already placed as planned are skipped.",
	Example: example.Deployed + `run:
  - vm_group.MigrateGroup:
      vm_group_name: Workers
      from_node: 0
      to_node: 1
  - vm_group.ResetGroupPlacement:
      vm_group_name: Workers
`,
	Needs: []target.Capability{target.CapMigrate},
	New:   func() verb.Step { return new(resetGroupPlacement) },
}

type resetGroupPlacement struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"Group whose VMs go back."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *resetGroupPlacement) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
}

func (s *resetGroupPlacement) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group}
}

func (s *resetGroupPlacement) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "%s: migrating VMs back", s.Group)
	if err := resetPlacement(ctx, env, s.Group); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished migrating VMs back", s.Group)
	return nil
}

// resetPlacement moves the VMs of a group that are not where the plan placed them, node by node.
func resetPlacement(ctx context.Context, env *verb.Env, group string) error {
	if err := env.VMs.Refresh(ctx); err != nil {
		return err
	}
	home := map[string]string{}
	if g, ok := env.Plan.Group(group); ok {
		for _, vm := range g.VMs {
			home[vm.Name] = vm.NodeID
		}
	}
	for _, node := range env.Plan.Target.Nodes {
		var astray []target.VM
		for _, vm := range env.VMs.Of(group) {
			if home[vm.Name] == node.ID && vm.NodeID != node.ID {
				astray = append(astray, vm)
			}
		}
		if err := env.Power.Move(ctx, astray, node.ID); err != nil {
			return err
		}
	}
	return nil
}
