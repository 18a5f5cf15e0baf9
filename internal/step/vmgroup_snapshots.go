package step

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupCreateSnapshot = verb.Kind{
	Name:    "vm_group.CreateSnapshot",
	Summary: "Take one snapshot of all VMs of a group, by name.",
	Doc:     "vm_group.RevertToSnapshot returns to it. Snapshots are removed with their VMs.",
	Example: example.Deployed + `run:
  - vm_group.CreateSnapshot:
      vm_group_name: Workers
      snapshot_name: filled
`,
	Needs: []target.Capability{target.CapSnapshot},
	New:   func() verb.Step { return new(createSnapshot) },
}

type createSnapshot struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"Group whose VMs to snapshot."`
	Name     string `arg:"snapshot_name,required" doc:"Name of the snapshot, in this run only."`
	Annotate bool   `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *createSnapshot) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
}

func (s *createSnapshot) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Snapshot: s.Group, Snapshots: 1}
}

func (s *createSnapshot) Run(ctx context.Context, env *verb.Env) error {
	snapshotter, ok := env.Target.(target.Snapshotter)
	if !ok {
		return fmt.Errorf("snapshot group %q: the target cannot", s.Group)
	}
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	take := func(ctx context.Context) error { return snapshotter.SnapshotVMs(ctx, env.Tag, vms, s.Name) }
	if err := env.Timed(ctx, interval.OperationSnapshot, vms, take); err != nil {
		return fmt.Errorf("take snapshot %q of group %q: %w", s.Name, s.Group, err)
	}
	env.Mark(s.Annotate, "%s: snapshot %s", s.Group, s.Name)
	return nil
}

var groupRevertToSnapshot = verb.Kind{
	Name:    "vm_group.RevertToSnapshot",
	Summary: "Return the disks of a group's VMs to an earlier snapshot.",
	Doc: "The VMs have to be off, as after vm_group.PowerOff; vm_group.PowerOn starts them with the data that they had when " +
		"vm_group.CreateSnapshot took the latest snapshot of that name.",
	Example: example.Deployed + `run:
  - vm_group.CreateSnapshot:
      vm_group_name: Workers
      snapshot_name: filled
  - vm_group.PowerOff:
      vm_group_name: Workers
  - vm_group.RevertToSnapshot:
      vm_group_name: Workers
      snapshot_name: filled
  - vm_group.PowerOn:
      vm_group_name: Workers
`,
	Needs: []target.Capability{target.CapRevert, target.CapVMPower},
	New:   func() verb.Step { return new(revertGroup) },
}

type revertGroup struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"Group whose disks to revert."`
	Name     string `arg:"snapshot_name,required" doc:"Name that vm_group.CreateSnapshot gave."`
	Annotate bool   `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *revertGroup) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
}

func (s *revertGroup) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group, Halts: s.Group}
}

func (s *revertGroup) Run(ctx context.Context, env *verb.Env) error {
	reverter, ok := env.Target.(target.Reverter)
	if !ok {
		return fmt.Errorf("revert group %q: the target cannot", s.Group)
	}
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	if err := reverter.RevertVMs(ctx, env.Tag, vms, s.Name); err != nil {
		return fmt.Errorf("revert group %q to snapshot %q: %w", s.Group, s.Name, err)
	}
	env.Mark(s.Annotate, "%s: reverted to snapshot %s", s.Group, s.Name)
	return nil
}
