package step

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

var playbookRun = run.Kind{
	Name:    "playbook.Run",
	Summary: "Run an Ansible playbook of the scenario on the VMs of some groups.",
	Doc: "Runs programs of the scenario on this machine and in VMs, so it needs --allow-shell, ansible-playbook on this " +
		"machine, and a target whose VMs can be reached by ssh. The inventory has one host group for each VM group named, " +
		"and nodes for the target's hosts. The playbook also finds the variable output_directory, a folder whose content " +
		"stays with the run. On a simulated target the playbook is only noted.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: Workers
      power_on: True
run:
  - playbook.Run:
      filename: load.fio
      inventory: [Workers]
      remote_user: nutanix
      remote_pass: nutanix/4u
      variables:
        iterations: 3
`,
	Needs: []target.Capability{target.CapPlaybook},
	New:   func() run.Step { return new(playbook) },
}

type playbook struct {
	Filename   string         `arg:"filename,required" of:"file" doc:"Playbook in the scenario's folder."`
	Inventory  []string       `arg:"inventory,required" doc:"VM groups on which it runs; nodes are the target's hosts."`
	RemoteUser string         `arg:"remote_user,required" doc:"User on the hosts."`
	RemotePass string         `arg:"remote_pass,required" secret:"true" doc:"Password of that user."`
	Variables  map[string]any `arg:"variables" doc:"Variables for the playbook."`
	Forks      int            `arg:"forks" default:"5" doc:"How many hosts are worked on at a time."`
	Annotate   bool           `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

// nodesInventory is the name under which an inventory holds the target's hosts.
const nodesInventory = "nodes"

func (s *playbook) Check(v *run.View, problems *run.Problems) {
	for _, name := range s.Inventory {
		if name == nodesInventory {
			continue
		}
		if !slices.Contains(v.GroupNames(), name) {
			problems.Errorf("inventory", "unknown-group", "there is no group %q", name)
		} else if !v.Deployed(name) {
			problems.Errorf("inventory", "not-deployed", "group %q has no VM here: no vm_group.CloneFromTemplate comes before", name)
		}
	}
	if s.Forks < 1 {
		problems.Errorf("forks", "argument-range", "forks must be at least 1, not %d", s.Forks)
	}
}

func (s *playbook) Effect(*run.View) run.Effect { return run.Effect{Subject: s.Filename} }

func (s *playbook) Run(ctx context.Context, env *run.Env) error {
	if env.Plan.Target.Simulated {
		env.Notes.Log(fmt.Sprintf("playbook %s is not run on a simulated target", s.Filename))
		return nil
	}
	if env.Scenario.Dir == "" {
		return fmt.Errorf("run playbook %q: the scenario has no folder of its own", s.Filename)
	}
	folder, err := filepath.Abs(env.Scenario.Dir)
	if err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	// Should this program be killed, what holds passwords goes with the journal and not with nobody.
	if err := os.MkdirAll(env.Private, 0o700); err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	private, err := os.MkdirTemp(env.Private, "playbook-")
	if err == nil {
		private, err = filepath.Abs(private)
	}
	if err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	defer os.RemoveAll(private)
	inventory, err := s.inventory(env)
	if err != nil {
		return err
	}
	hosts, variables := filepath.Join(private, "inventory.json"), filepath.Join(private, "variables.json")
	if err := writeJSON(hosts, inventory); err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	if err := writeJSON(variables, s.extra(env)); err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	cmd := exec.CommandContext(ctx, "ansible-playbook", "--inventory", hosts, "--extra-vars", "@"+variables,
		"--forks", strconv.Itoa(s.Forks), filepath.Join(folder, s.Filename))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "ANSIBLE_HOST_KEY_CHECKING=False", "ANSIBLE_RETRY_FILES_ENABLED=False")
	if err := runProgram(ctx, env, cmd); err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
	annotate(env, s.Annotate, "Playbook %s has run", s.Filename)
	return nil
}

// inventory is what ansible reads as a YAML inventory; JSON is YAML. Passwords stand in a private file, never on a
// command line.
func (s *playbook) inventory(env *run.Env) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range s.Inventory {
		hosts := map[string]any{}
		for _, address := range addresses(env, name) {
			hosts[address] = map[string]any{}
		}
		if len(hosts) == 0 {
			return nil, fmt.Errorf("run playbook %q: %q has no host with an address", s.Filename, name)
		}
		all[strings.ReplaceAll(name, " ", "_")] = map[string]any{"hosts": hosts,
			"vars": map[string]any{"ansible_user": s.RemoteUser, "ansible_password": s.RemotePass}}
	}
	return all, nil
}

func addresses(env *run.Env, name string) []string {
	var out []string
	if name == nodesInventory {
		for _, n := range env.Plan.Target.Nodes {
			if n.Address != "" {
				out = append(out, n.Address)
			}
		}
		return out
	}
	for _, vm := range env.VMs.Of(name) {
		if len(vm.Addresses) > 0 {
			out = append(out, vm.Addresses[0])
		}
	}
	return out
}

func (s *playbook) extra(env *run.Env) map[string]any {
	extra := map[string]any{"output_directory": env.Dir}
	maps.Copy(extra, s.Variables)
	return extra
}

func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
