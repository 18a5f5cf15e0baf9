package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupGrow = verb.Kind{
	Name:    "vm_group.Grow",
	Summary: "Add VMs to a group as clones of its first VM.",
	Doc: "The clones are made of the group's first VM in its current state, data included, so that a prefilled VM gives prefilled " +
		"clones; they are powered on when that VM is. count_per_node or count_per_cluster says how many VMs the group has " +
		"afterwards, which must be more than before. VMs that were moved meanwhile are moved back first, where the target " +
		"can.",
	Example: example.Load + `
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
run:
  - vm_group.Grow:
      vm_group_name: Workers
      count_per_node: 2
      linked_clone: True
`,
	Needs: []target.Capability{target.CapClone},
	New:   func() verb.Step { return new(grow) },
}

type grow struct {
	Group      string `arg:"vm_group_name,required" of:"group" doc:"Group to grow."`
	PerNode    *int   `arg:"count_per_node" doc:"VMs on each of the group's nodes afterwards."`
	PerCluster *int   `arg:"count_per_cluster" doc:"VMs of the group afterwards. One of the two counts is needed."`
	Annotate   bool   `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
	Linked     bool   `arg:"linked_clone" default:"false" doc:"Let the clones share what they have in common, where the target can."`
}

// count returns how many VMs the group has afterwards, in the numbers of the scenario.
func (s *grow) count(nodes int) int {
	switch {
	case s.PerNode != nil:
		return *s.PerNode * nodes
	case s.PerCluster != nil:
		return *s.PerCluster
	}
	return 0
}

func (s *grow) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	switch {
	case s.PerNode != nil && s.PerCluster != nil:
		problems.Errorf("count_per_cluster", "count-twice", "give count_per_node or count_per_cluster, not both")
	case s.PerNode == nil && s.PerCluster == nil:
		problems.Errorf("", "missing-argument", "vm_group.Grow needs count_per_node or count_per_cluster")
	default:
		s.checkGrows(v, problems)
	}
}

func (s *grow) checkGrows(v *verb.View, problems *verb.Problems) {
	arg := "count_per_node"
	if s.PerCluster != nil {
		arg = "count_per_cluster"
	}
	before, after := v.GroupCount(s.Group), s.count(len(v.GroupNodes(s.Group)))
	if after <= before {
		problems.Errorf(arg, "does-not-grow", "group %q has %d VMs here and would have %d: vm_group.Grow only adds VMs",
			s.Group, before, after)
	}
	if after > verb.GroupCountMax {
		problems.Errorf(arg, "group-size", "group %q would have %d VMs, more than the bound of %d", s.Group, after, verb.GroupCountMax)
	}
}

func (s *grow) Effect(v *verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Grows: s.Group, GrowTo: s.count(len(v.GroupNodes(s.Group)))}
}

func (s *grow) Estimate(v *verb.View) time.Duration {
	return v.BootGrown(s.Group, s.count(len(v.GroupNodes(s.Group))))
}

func (s *grow) Run(ctx context.Context, env *verb.Env) error {
	if _, ok := env.Target.(target.Migrator); ok {
		if err := resetPlacement(ctx, env, s.Group); err != nil {
			return err
		}
	}
	g, _ := env.Plan.Group(s.Group)
	scenarioCount := s.count(len(g.NodeIndexes))
	env.Mark(s.Annotate, "%s: growing from %d to %d VMs", s.Group, len(env.VMs.Of(s.Group)), g.Scaled(scenarioCount))
	if _, err := env.VMs.Grow(ctx, s.Group, scenarioCount, s.Linked); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished growing", s.Group)
	return nil
}
