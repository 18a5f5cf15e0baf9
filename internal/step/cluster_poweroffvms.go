package step

import (
	"context"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var clusterPowerOffCurieVMs = verb.Kind{
	Name:    "cluster.PowerOffCurieVMs",
	Summary: "Power off all VMs of this run.",
	Doc:     "The name is X-Ray's. VMs of other runs, of X-Ray or of other users are not touched.",
	Example: example.Idle + `setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
      power_on: True
run:
  - test.Wait:
      duration_secs: 1
teardown:
  - cluster.PowerOffCurieVMs: {}
`,
	Needs: []target.Capability{target.CapVMPower},
	New:   func() verb.Step { return new(powerOffAll) },
}

type powerOffAll struct {
	Annotate bool `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *powerOffAll) Effect(*verb.View) verb.Effect { return verb.Effect{HaltsAll: true} }

func (s *powerOffAll) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "Powering off all VMs of the run")
	if vms := env.VMs.Of(""); len(vms) > 0 {
		if err := env.Power.Off(ctx, vms); err != nil {
			return err
		}
	}
	env.Mark(s.Annotate, "Finished powering off all VMs of the run")
	return nil
}
