package step

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/step/external"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var groupRunCommand = verb.Kind{
	Name:    "vm_group.RunCommand",
	Summary: "Run a command in the shell of every VM of a group, one VM after the other.",
	Doc: "Runs programs of the scenario, so it needs --allow-shell and a target that offers a shell in its VMs. A command " +
		"that fails or takes longer than timeout_secs fails the step, unless fail_on_error is off. On a simulated target " +
		"the command is only recorded.",
	Example: example.Deployed + `run:
  - vm_group.RunCommand:
      vm_group_name: Workers
      command: sync
`,
	Needs: []target.Capability{target.CapGuestShell},
	New:   func() verb.Step { return new(runCommand) },
}

type runCommand struct {
	Group       string        `arg:"vm_group_name,required" of:"group" doc:"Group on whose VMs to run it."`
	Command     string        `arg:"command,required" doc:"Command line for the shell of the VM."`
	FailOnError bool          `arg:"fail_on_error" default:"true" doc:"Fail the step when the command fails on a VM."`
	User        string        `arg:"user" default:"nutanix" doc:"User in the VM."`
	Annotate    bool          `arg:"annotate" default:"false" doc:"Mark the moment on charts."`
	Timeout     time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" default:"120" doc:"How long it may take on each VM."`
}

func (s *runCommand) Check(v *verb.View, problems *verb.Problems) {
	checkDeployed(s.Group, v, problems)
	if s.Group != "" && v.Deployed(s.Group) && !v.PoweredOn(s.Group) {
		notPoweredOn("vm_group_name", fmt.Sprintf("group %q", s.Group), problems)
	}
}

func (s *runCommand) Effect(*verb.View) verb.Effect { return verb.Effect{Subject: s.Group} }

func (s *runCommand) Run(ctx context.Context, env *verb.Env) error {
	vms, err := groupVMs(env, s.Group)
	if err != nil {
		return err
	}
	shell, ok := env.Target.(target.GuestShell)
	if !ok {
		if env.Plan.Target.Simulated {
			env.Notes.Log(fmt.Sprintf("%s: not run on a simulated target: %s", s.Group, s.Command))
			return nil
		}
		return fmt.Errorf("run a command on group %q: the target cannot", s.Group)
	}
	env.Mark(s.Annotate, "%s: running %q", s.Group, s.Command)
	for _, vm := range vms {
		if err := s.runOn(ctx, env, shell, vm); err != nil {
			return err
		}
	}
	return nil
}

func (s *runCommand) runOn(ctx context.Context, env *verb.Env, shell target.GuestShell, vm target.VM) error {
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	output, err := shell.RunInVM(bounded, vm, s.User, s.Command)
	if output != "" {
		env.Notes.Log(vm.Name + ": " + tail(output))
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("run %q on vm %q: %w", s.Command, vm.Name, err)
	if s.FailOnError || ctx.Err() != nil {
		return err
	}
	env.Notes.Log(err.Error())
	return nil
}

func tail(output string) string {
	if len(output) > external.OutputBytesMax {
		return "…" + output[len(output)-external.OutputBytesMax:]
	}
	return output
}
