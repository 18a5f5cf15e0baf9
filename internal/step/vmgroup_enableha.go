package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupEnableHA = verb.Kind{
	Name:    "vm_group.EnableHA",
	Summary: "Let the cluster restart the run's VMs on another node after a node failure.",
	Doc: "As in X-Ray the step names a group and acts on all VMs of the run. At the end of the run it is undone before " +
		"VMs are deleted, so that the cluster does not restart VMs that are being deleted.",
	Example: example.Deployed + `  - vm_group.EnableHA:
      vm_group_name: Workers
` + example.Wait,
	Needs: []target.Capability{target.CapPlacement},
	New:   func() verb.Step { return new(enableHA) },
}

type enableHA struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"A group; all VMs of the run are meant."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *enableHA) Check(v *verb.View, problems *verb.Problems) { checkDeployed(s.Group, v, problems) }

func (s *enableHA) Effect(*verb.View) verb.Effect { return verb.Effect{Subject: s.Group, SetsHA: true} }

func (s *enableHA) Run(ctx context.Context, env *verb.Env) error {
	return setHA(ctx, env, true, s.Group, s.Annotate)
}

func (s *enableHA) Undo(ctx context.Context, env *verb.Env) error {
	return setHA(ctx, env, false, s.Group, false)
}
