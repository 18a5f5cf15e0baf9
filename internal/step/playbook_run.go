package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/playbook"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var playbookRun = verb.Kind{
	Name:    "playbook.Run",
	Summary: "Run an Ansible playbook of the scenario on the VMs of some groups.",
	Doc: "Runs programs of the scenario on this machine and in VMs, so it needs --allow-shell, ansible-playbook on this " +
		"machine, and a target whose VMs can be reached by ssh: libvirt with cloud images, or ssh, where the hosts stand in for their VMs. " +
		"A target that has its own user for logins uses it in place of remote_user and remote_pass. Each task is an event of the run, and the output of ansible stays with it. " +
		"The inventory has one host group for each VM group named, " +
		"nodes for the target's hosts, and cvms for the storage controller VMs of a Nutanix cluster; a plan for a target without them refuses cvms. " +
		"The playbook also finds the variables output_directory, a folder whose content stays with the run, and hypervisor: ahv or esx as in " +
		"X-Ray, kvm on libvirt, not set elsewhere. variables of the step win over both. On a simulated target the playbook is only recorded.",
	Example: example.Idle + `setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
      power_on: True
run:
  - playbook.Run:
      filename: site.yml
      inventory: [Workers]
      remote_user: nutanix
      remote_pass: nutanix/4u
      variables:
        iterations: 3
`,
	Needs: []target.Capability{target.CapPlaybook},
	New:   func() verb.Step { return new(playbookStep) },
}

type playbookStep struct {
	Filename   string         `arg:"filename,required" of:"file" doc:"Playbook in the scenario's folder."`
	Inventory  []string       `arg:"inventory,required" doc:"VM groups on which it runs; nodes are the target's hosts, cvms its storage controllers."`
	RemoteUser string         `arg:"remote_user,required" doc:"User on the hosts."`
	RemotePass string         `arg:"remote_pass" secret:"true" doc:"Password of that user, where the target has no login of its own."`
	Variables  map[string]any `arg:"variables" doc:"Variables for the playbook."`
	Forks      int            `arg:"forks" default:"5" doc:"How many hosts are worked on at a time."`
	Timeout    *time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" doc:"How long it may take; any time without it."`
	Annotate   bool           `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

func (s *playbookStep) Check(v *verb.View, problems *verb.Problems) {
	if s.Inventory != nil && len(s.Inventory) == 0 {
		problems.Hint("inventory", "empty-inventory", "name VM groups of the scenario, or nodes", "the inventory is empty: the playbook would run on no machine")
	}
	if text, known := v.Scenario.Files[s.Filename]; known && playbook.Fault(text) != "" {
		problems.Hint("filename", "bad-playbook", "a playbook is a list of plays, each with hosts", fmt.Sprintf("playbook %q %s", s.Filename, playbook.Fault(text)))
	}
	for _, name := range s.Inventory {
		if name == playbook.NodesInventory {
			continue
		}
		if name == playbook.CVMsInventory {
			checkCVMs(v, problems)
			continue
		}
		if !slices.Contains(v.GroupNames(), name) {
			problems.Errorf("inventory", "unknown-group", "unknown group %q", name)
		} else if !v.Deployed(name) {
			problems.Errorf("inventory", "not-deployed", "group %q has no VM here: no vm_group.CloneFromTemplate comes before", name)
		} else if !v.PoweredOn(name) {
			notPoweredOn("inventory", fmt.Sprintf("group %q", name), problems)
		}
	}
	if s.Timeout != nil && *s.Timeout <= 0 {
		problems.Errorf("timeout_secs", "argument-range", "timeout_secs must be above 0")
	}
	if s.Forks < 1 {
		problems.Errorf("forks", "argument-range", "forks must be at least 1, not %d", s.Forks)
	}
}

// Lacks lists what is missing here for the playbook.
func (s *playbookStep) Lacks(v *verb.View) []string { return s.book().Lacks(v) }

func (s *playbookStep) book() *playbook.Playbook {
	return &playbook.Playbook{Filename: s.Filename, Inventory: s.Inventory, User: s.RemoteUser, Password: s.RemotePass,
		Variables: s.Variables, Forks: s.Forks}
}

// checkCVMs reports a target without storage controllers. A simulated one runs no playbook.
func checkCVMs(v *verb.View, problems *verb.Problems) {
	has := slices.ContainsFunc(v.Inventory.Nodes, func(n target.Node) bool { return n.CVM != "" })
	if !has && !v.Inventory.Simulated {
		problems.Hint("inventory", "lacks-capability", "cvms are the storage controller VMs of a Nutanix cluster; name nodes or VM groups",
			fmt.Sprintf("target %q has no storage controller VMs for the inventory cvms", v.Inventory.Name))
	}
}

func (s *playbookStep) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Filename, Groups: s.Inventory}
}

func (s *playbookStep) Run(ctx context.Context, env *verb.Env) error {
	if env.Plan.Target.Simulated {
		env.Notes.Log(fmt.Sprintf("playbook %s is not run on a simulated target", s.Filename))
		return nil
	}
	if s.Timeout != nil {
		bounded, cancel := context.WithTimeoutCause(ctx, *s.Timeout, fmt.Errorf("it did not end within %s", unit.FormatDuration(*s.Timeout)))
		defer cancel()
		ctx = bounded
	}
	if err := s.book().Run(ctx, env); err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	env.Mark(s.Annotate, "Playbook %s has run", s.Filename)
	return nil
}
