package step

import (
	"context"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupMigrateGroup = verb.Kind{
	Name:    "vm_group.MigrateGroup",
	Summary: "Migrate those VMs of a group that are on one node to another.",
	Doc:     "Nodes are given by their index; a negative index counts from the end.",
	Example: exampleDeployed + `run:
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
	checkNodeIndex("from_node", s.From, v, problems)
	checkNodeIndex("to_node", s.To, v, problems)
}

// checkNodeIndex reports an index without a node.
func checkNodeIndex(arg string, index int, v *verb.View, problems *verb.Problems) {
	if count := len(v.Inventory.Nodes); index >= count || index < -count {
		problems.Errorf(arg, "node-range", "%v", scenario.MissingNode(index, count))
	}
}

// nodeAt returns the node with that index; negative ones count from the end.
func nodeAt(index int, nodes []target.Node) target.Node {
	if index < 0 {
		index += len(nodes)
	}
	return nodes[index]
}

func (s *migrateGroup) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group}
}

func (s *migrateGroup) Run(ctx context.Context, env *verb.Env) error {
	if err := env.VMs.Refresh(ctx); err != nil {
		return err
	}
	from, to := nodeAt(s.From, env.Plan.Target.Nodes), nodeAt(s.To, env.Plan.Target.Nodes)
	var moving []target.VM
	for _, vm := range env.VMs.Of(s.Group) {
		if vm.NodeID == from.ID {
			moving = append(moving, vm)
		}
	}
	annotate(env, s.Annotate, "%s: migrating %d VMs from node %q to node %q", s.Group, len(moving), from.Name, to.Name)
	if err := env.Power.Move(ctx, moving, to.ID); err != nil {
		return err
	}
	annotate(env, s.Annotate, "%s: finished migrating %d VMs from node %q to node %q", s.Group, len(moving), from.Name, to.Name)
	return nil
}
