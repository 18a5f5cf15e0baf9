package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupWaitForPowerOn = verb.Kind{
	Name:    "vm_group.WaitForPowerOn",
	Summary: "Wait until the agents of all VMs of a group answer.",
	Doc: "For VMs that come back by themselves, as after a node failure with restart elsewhere. The step takes wait_secs at most, " +
		"also where an agent is being called then.\n\n" +
		"Where the platform restarts no VM on another node, as with the providers local, ssh and libvirt, the step cannot succeed " +
		"while a node with VMs of the group is off. The plan warns of it, and the run fails the step at once. libvirt starts VMs " +
		"again with their own node where restart is on; elsewhere vm_group.PowerOn has to, once the node has power.",
	Example: example.Deployed + `  - vm_group.WaitForPowerOn:
      vm_group_name: Workers
` + example.Wait,
	Needs: []target.Capability{target.CapAgents},
	Waits: true,
	New:   func() verb.Step { return new(waitGroupOn) },
}

type waitGroupOn struct {
	Group    string        `arg:"vm_group_name,required" of:"group" doc:"Group to wait for."`
	Wait     time.Duration `arg:"wait_secs" unit:"s" scale:"timeout" default:"600" doc:"How long the VMs may take."`
	Annotate bool          `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *waitGroupOn) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	if nodes := v.Stranded(s.Group); len(nodes) > 0 {
		problems.Warnf("vm_group_name", "vms-stay-off", "VMs of group %q lose their power with %s, and target %q does not restart "+
			"them: this step will fail; power on the nodes and use vm_group.PowerOn", s.Group, strings.Join(nodes, ", "), v.Inventory.Name)
	}
}

func (s *waitGroupOn) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Boots: s.Group}
}

func (s *waitGroupOn) Run(ctx context.Context, env *verb.Env) error {
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	began := time.Now()
	// VMs are polled even if listing them fails. Listing has at most the time of the step.
	listing, cancel := context.WithTimeout(ctx, max(s.Wait, time.Second))
	defer cancel()
	if err := env.VMs.Refresh(listing); err == nil {
		vms = env.VMs.Of(s.Group)
	}
	left := max(s.Wait-time.Since(began), time.Second)
	if lost := env.Stranded(vms); len(lost) > 0 {
		return fmt.Errorf("wait for %d VMs of group %q, first %q: they have no power, and target %q restarts no VM by itself; "+
			"power on their nodes and use vm_group.PowerOn", len(lost), s.Group, lost[0].Name, env.Plan.Target.Name)
	}
	if err := waitReachable(ctx, env, patience{group: s.Group, timeout: left, strict: true}); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished powering on VMs", s.Group)
	return nil
}
