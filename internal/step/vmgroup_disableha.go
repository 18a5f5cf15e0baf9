package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupDisableHA = verb.Kind{
	Name:    "vm_group.DisableHA",
	Summary: "Keep the cluster from restarting the run's VMs on another node after a node failure.",
	Doc:     "As in X-Ray the step names a group and acts on all VMs of the run.",
	Example: example.Deployed + `  - vm_group.DisableHA:
      vm_group_name: Workers
` + example.Wait,
	Needs: []target.Capability{target.CapPlacement},
	New:   func() verb.Step { return new(disableHA) },
}

type disableHA struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"A group; all VMs of the run are meant."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *disableHA) Check(v *verb.View, problems *verb.Problems) { checkDeployed(s.Group, v, problems) }

func (s *disableHA) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, SetsHA: true}
}

func (s *disableHA) Run(ctx context.Context, env *verb.Env) error {
	return setHA(ctx, env, false, s.Group, s.Annotate)
}
