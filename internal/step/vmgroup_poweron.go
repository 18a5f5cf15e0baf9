package step

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupPowerOn = verb.Kind{
	Name:    "vm_group.PowerOn",
	Summary: "Power on the VMs of a group and wait until their agents answer.",
	Doc: "At most max_concurrent VMs are powered on at a time, which softens a boot storm. A system that boots " +
		"may take 15 minutes until its agent answers.",
	Example: example.Load + `
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
  - vm_group.PowerOn:
      vm_group_name: Workers
      max_concurrent: 2
` + example.Wait,
	Needs: []target.Capability{target.CapVMPower},
	New:   func() verb.Step { return new(powerOn) },
}

const powerOnConcurrentDefault = 100

type powerOn struct {
	Group         string `arg:"vm_group_name,required" of:"group" doc:"Group to power on."`
	MaxConcurrent int    `arg:"max_concurrent" default:"100" doc:"How many VMs are powered on at a time."`
	Annotate      bool   `arg:"annotate" default:"false" doc:"Mark the moments on charts."`
}

func (s *powerOn) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Group, Changes: s.Group, Boots: s.Group}
}

func (s *powerOn) Estimate(v *verb.View) time.Duration { return v.Boot(s.Group) }

func (s *powerOn) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	if s.MaxConcurrent < 1 {
		problems.Errorf("max_concurrent", "argument-range", "max_concurrent must be at least 1, not %d", s.MaxConcurrent)
	}
}

func (s *powerOn) Run(ctx context.Context, env *verb.Env) error {
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: powering on VMs", s.Group)
	for batch := range slices.Chunk(vms, s.MaxConcurrent) {
		if err := env.Power.On(ctx, batch); err != nil {
			return err
		}
	}
	// X-Ray's bound: one minute, plus one per twenty VMs or part of twenty. It ends the attempts; one in progress is waited for.
	timeout := time.Minute * time.Duration(1+(len(vms)+19)/20)
	if err := waitReachable(ctx, env, patience{group: s.Group, timeout: timeout}); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished powering on VMs", s.Group)
	return nil
}

// checkDeployed warns if a step uses a group that no earlier step deployed.
func checkDeployed(group string, v *verb.View, problems *verb.Problems) {
	if group != "" && !v.Deployed(group) {
		problems.Errorf("vm_group_name", "not-deployed",
			"group %q has no VM here: no vm_group.CloneFromTemplate comes before", group)
	}
}

// notPoweredOn reports that a step needs VMs which are off at that point.
func notPoweredOn(arg, of string, problems *verb.Problems) {
	problems.Hint(arg, "not-powered-on", "add vm_group.PowerOn, or power_on: True to vm_group.CloneFromTemplate",
		fmt.Sprintf("the VMs of %s are off here: no step before powers them on", of))
}

// groupVMs returns the VMs of a group; an empty group is an error.
func groupVMs(env *verb.Env, group string) ([]target.VM, error) {
	vms := env.VMs.Of(group)
	if len(vms) == 0 {
		return nil, fmt.Errorf("group %q has no VM", group)
	}
	return vms, nil
}

// reachPoll is how often VMs that do not answer yet are tried again.
const reachPoll = 250 * time.Millisecond

// reachConcurrentMax bounds how many VMs are polled at a time.
const reachConcurrentMax = 64

// patience is how long to wait for the agents of a group.
type patience struct {
	group   string
	timeout time.Duration
	// strict: when the time is over, a call of an agent in progress is given up. Otherwise it is waited for: a VM may be booting.
	strict bool
}

// waitReachable waits until the agents of all VMs of a group answer. Each is polled separately, so that one that does not answer
// does not hide when the others do.
func waitReachable(ctx context.Context, env *verb.Env, p patience) error {
	vms, began := env.VMs.Of(p.group), time.Now()
	last, late := make([]error, len(vms)), make([]bool, len(vms))
	slots := make(chan struct{}, reachConcurrentMax)
	calling := ctx
	if p.strict {
		var cancel context.CancelFunc
		calling, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
	}
	var wait sync.WaitGroup
	for i, vm := range vms {
		wait.Go(func() {
			late[i] = nil != verb.WaitFor(ctx, p.timeout, reachPoll, func() bool {
				select {
				case slots <- struct{}{}:
				case <-calling.Done():
					last[i] = cmp.Or(last[i], context.Cause(calling))
					return false
				}
				defer func() { <-slots }()
				last[i] = env.Power.Reach(calling, vm)
				return last[i] == nil
			})
		})
	}
	wait.Wait()
	first := slices.Index(late, true)
	if first < 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	missing := 0
	for _, l := range late {
		if l {
			missing++
		}
	}
	return fmt.Errorf("wait for %d VMs of group %q, first %q, to answer within %v: %w", missing, p.group, vms[first].Name,
		time.Since(began).Round(time.Second), last[first]) // an attempt that began in time may have lasted
}
