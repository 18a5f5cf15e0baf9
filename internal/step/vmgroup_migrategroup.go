package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupMigrateGroup = verb.Kind{
	Name:    "vm_group.MigrateGroup",
	Summary: "Migrate those VMs of a group that are on one node to another.",
	Doc:     "Nodes are given by their index; a negative index counts from the end.",
	Example: example.Deployed + `run:
  - vm_group.MigrateGroup:
      vm_group_name: Workers
      from_node: 0
      to_node: 1
      annotate: True
`,
	Needs: []target.Capability{target.CapMigrate},
	New:   func() verb.Step { return new(migrateGroup) },
}

type migrateGroup struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"Group whose VMs to migrate."`
	From     int    `arg:"from_node,required" doc:"Index of the node to leave."`
	To       int    `arg:"to_node,required" doc:"Index of the node to go to."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *migrateGroup) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	verb.CheckNodeIndex("from_node", s.From, v, problems)
	verb.CheckNodeIndex("to_node", s.To, v, problems)
}

func (s *migrateGroup) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group}
}

func (s *migrateGroup) Run(ctx context.Context, env *verb.Env) error {
	if err := env.VMs.Refresh(ctx); err != nil {
		return err
	}
	from, to := verb.NodeAt(s.From, env.Plan.Target.Nodes), verb.NodeAt(s.To, env.Plan.Target.Nodes)
	var moving []target.VM
	for _, vm := range env.VMs.Of(s.Group) {
		if vm.NodeID == from.ID {
			moving = append(moving, vm)
		}
	}
	env.Mark(s.Annotate, "%s: migrating %d VMs from node %q to node %q", s.Group, len(moving), from.Name, to.Name)
	if err := env.Power.Move(ctx, moving, to.ID); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished migrating %d VMs from node %q to node %q", s.Group, len(moving), from.Name, to.Name)
	return nil
}
