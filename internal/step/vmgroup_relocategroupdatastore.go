package step

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupRelocateGroupDatastore = verb.Kind{
	Name:    "vm_group.RelocateGroupDatastore",
	Summary: "Move the disks of a group's VMs to another datastore while they run.",
	Example: example.Deployed + `run:
  - vm_group.RelocateGroupDatastore:
      vm_group_name: Workers
      dest_datastore_name: fast
      annotate: True
`,
	Doc:   "All VMs of the group go to the same datastore.",
	Needs: []target.Capability{target.CapRelocate},
	New:   func() verb.Step { return new(relocateGroup) },
}

type relocateGroup struct {
	Group     string `arg:"vm_group_name,required" of:"group" doc:"Group whose disks to move."`
	Datastore string `arg:"dest_datastore_name,required" doc:"Name of the datastore to move to."`
	Annotate  bool   `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *relocateGroup) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
}

func (s *relocateGroup) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group}
}

func (s *relocateGroup) Run(ctx context.Context, env *verb.Env) error {
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	relocator, ok := env.Target.(target.DatastoreRelocator)
	if !ok {
		return fmt.Errorf("relocate group %q: the target cannot", s.Group)
	}
	env.Mark(s.Annotate, "%s: moving disks to datastore %q", s.Group, s.Datastore)
	if err := relocator.RelocateVMs(ctx, env.Tag, vms, s.Datastore); err != nil {
		return fmt.Errorf("relocate group %q to datastore %q: %w", s.Group, s.Datastore, err)
	}
	env.Mark(s.Annotate, "%s: finished moving disks to datastore %q", s.Group, s.Datastore)
	return nil
}
