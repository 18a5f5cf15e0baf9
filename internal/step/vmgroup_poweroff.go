package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupPowerOff = verb.Kind{
	Name:    "vm_group.PowerOff",
	Summary: "Cut the power of a group's VMs, without a shutdown.",
	Doc:     "A load that still runs there ends; that is annotated and does not fail the run.",
	Example: example.Deployed + `run:
  - test.Wait:
      duration_secs: 1
  - vm_group.PowerOff:
      vm_group_name: Workers
      annotate: True
`,
	Needs: []target.Capability{target.CapVMPower},
	New:   func() verb.Step { return new(powerOffGroup) },
}

type powerOffGroup struct {
	Group    string `arg:"vm_group_name,required" of:"group" doc:"Group to power off."`
	Annotate bool   `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *powerOffGroup) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
}

func (s *powerOffGroup) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group, Halts: s.Group}
}

func (s *powerOffGroup) Run(ctx context.Context, env *verb.Env) error {
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: powering off VMs", s.Group)
	return env.Power.Off(ctx, vms)
}
