package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

var groupWaitForPowerOn = run.Kind{
	Name:    "vm_group.WaitForPowerOn",
	Summary: "Wait until the agents of all VMs of a group answer.",
	Doc:     "For VMs that come back by themselves, as after a node failure with restart elsewhere.",
	Example: exampleLoad + `
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
  - vm_group.PowerOn:
      vm_group_name: Workers
  - vm_group.WaitForPowerOn:
      vm_group_name: Workers
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapAgents},
	New:   func() run.Step { return new(waitGroupOn) },
}

type waitGroupOn struct {
	Group    string        `arg:"vm_group_name,required" of:"group" doc:"Group to wait for."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"600" doc:"How long the VMs may take."`
	Annotate bool          `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *waitGroupOn) Check(v *run.View, problems *run.Problems) { checkDeployed(s.Group, v, problems) }

func (s *waitGroupOn) Effect(*run.View) run.Effect { return run.Effect{Subject: s.Group} }

func (s *waitGroupOn) Run(ctx context.Context, env *run.Env) error {
	if _, err := groupVMs(env, s.Group); err != nil {
		return err
	}
	if err := waitReachable(ctx, env, s.Group, s.Wait); err != nil {
		return err
	}
	annotate(env, s.Annotate, "%s: finished powering on VMs", s.Group)
	return nil
}
