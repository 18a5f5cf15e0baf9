package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupCloneFromTemplate = verb.Kind{
	Name:    "vm_group.CloneFromTemplate",
	Summary: "Create the VMs of a group from its template.",
	Doc: "VMs are dealt to the group's nodes in turn; a group without a count has one VM per node. They have empty data " +
		"disks and are powered off unless power_on is set. Where the target knows automatic balancing and restart after a " +
		"node failure (DRS, HA), both are switched off for the new VMs unless the scenario says otherwise.",
	Example: example.Deployed + example.Wait,
	New:     func() verb.Step { return new(cloneFromTemplate) },
}

type cloneFromTemplate struct {
	Group      string `arg:"vm_group_name,required" of:"group" doc:"Group whose VMs to create."`
	PowerOn    bool   `arg:"power_on" default:"false" doc:"Power the VMs on afterwards and wait until they answer."`
	Linked     bool   `arg:"linked_clone" default:"false" doc:"Let the clones share the template's system disk, where the target can."`
	DisableDRS bool   `arg:"disable_drs" default:"true" doc:"Switch off automatic balancing for the VMs, where the target has it."`
	DisableHA  bool   `arg:"disable_ha" default:"true" doc:"Switch off restart after a node failure for the VMs, where the target has it."`
	Annotate   bool   `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
}

func (s *cloneFromTemplate) Effect(*verb.View) verb.Effect {
	e := verb.Effect{Subject: s.Group, Deploys: s.Group}
	if s.PowerOn {
		e.Boots = s.Group
	}
	return e
}

func (s *cloneFromTemplate) Estimate(v *verb.View) time.Duration {
	if !s.PowerOn {
		return 0
	}
	return v.Boot(s.Group)
}

func (s *cloneFromTemplate) Check(v *verb.View, problems *verb.Problems) {
	if v.DeployedForSure(s.Group) {
		problems.Errorf("vm_group_name", "deployed-twice", "group %q is deployed already; vm_group.Grow adds VMs", s.Group)
	}
}

func (s *cloneFromTemplate) Run(ctx context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "%s: cloning VMs", s.Group)
	vms, err := env.VMs.Deploy(ctx, s.Group)
	if err != nil {
		return err
	}
	if placer, ok := env.Target.(target.Placer); ok {
		if s.DisableHA {
			if err := placer.SetHA(ctx, env.Tag, vms, false); err != nil {
				return err
			}
		}
		if s.DisableDRS {
			if err := placer.SetBalancing(ctx, env.Tag, vms, false); err != nil {
				return err
			}
		}
	}
	env.Mark(s.Annotate, "%s: finished cloning VMs", s.Group)
	if !s.PowerOn {
		return nil
	}
	on := powerOn{Group: s.Group, MaxConcurrent: powerOnConcurrentDefault, Annotate: s.Annotate}
	return on.Run(ctx, env)
}
