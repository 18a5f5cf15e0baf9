package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var playbookRun = verb.Kind{
	Name:    "playbook.Run",
	Summary: "Run an Ansible playbook of the scenario on the VMs of some groups.",
	Doc: "Runs programs of the scenario on this machine and in VMs, so it needs --allow-shell, ansible-playbook on this " +
		"machine, and a target whose VMs can be reached by ssh. The inventory has one host group for each VM group named, " +
		"nodes for the target's hosts, and cvms for the storage controller VMs of a Nutanix cluster; a plan for a target without them refuses cvms. " +
		"The playbook also finds the variables output_directory, a folder whose content stays with the run, and hypervisor: ahv or esx as in " +
		"X-Ray, kvm on libvirt, not set elsewhere. variables of the step win over both. On a simulated target the playbook is only noted.",
	Example: exampleIdle + `setup:
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
	New:   func() verb.Step { return new(playbook) },
}

type playbook struct {
	Filename   string         `arg:"filename,required" of:"file" doc:"Playbook in the scenario's folder."`
	Inventory  []string       `arg:"inventory,required" doc:"VM groups on which it runs; nodes are the target's hosts, cvms its storage controllers."`
	RemoteUser string         `arg:"remote_user,required" doc:"User on the hosts."`
	RemotePass string         `arg:"remote_pass,required" secret:"true" doc:"Password of that user."`
	Variables  map[string]any `arg:"variables" doc:"Variables for the playbook."`
	Forks      int            `arg:"forks" default:"5" doc:"How many hosts are worked on at a time."`
	Annotate   bool           `arg:"annotate" default:"false" doc:"Mark the end on charts."`
}

// Names under which an inventory holds the target's hosts and their storage controllers. A VM group of the same name is hidden
// by them, as in X-Ray.
const (
	nodesInventory = "nodes"
	cvmsInventory  = "cvms"
)

func (s *playbook) Check(v *verb.View, problems *verb.Problems) {
	for _, name := range s.Inventory {
		if name == nodesInventory {
			continue
		}
		if name == cvmsInventory {
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
	if s.Forks < 1 {
		problems.Errorf("forks", "argument-range", "forks must be at least 1, not %d", s.Forks)
	}
}

// checkCVMs reports a target without storage controllers. A simulated one runs no playbook.
func checkCVMs(v *verb.View, problems *verb.Problems) {
	has := slices.ContainsFunc(v.Inventory.Nodes, func(n target.Node) bool { return n.CVM != "" })
	if !has && !v.Inventory.Simulated {
		problems.Hint("inventory", "lacks-capability", "cvms are the storage controller VMs of a Nutanix cluster; name nodes or VM groups",
			fmt.Sprintf("target %q has no storage controller VMs for the inventory cvms", v.Inventory.Name))
	}
}

func (s *playbook) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: s.Filename, Groups: s.Inventory}
}

func (s *playbook) Run(ctx context.Context, env *verb.Env) error {
	if env.Plan.Target.Simulated {
		env.Notes.Log(fmt.Sprintf("playbook %s is not run on a simulated target", s.Filename))
		return nil
	}
	// If this program is killed, files with passwords are removed with the journal.
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
	folder, err := s.folder(env.Scenario, private)
	if err != nil {
		return fmt.Errorf("run playbook %q: %w", s.Filename, err)
	}
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

// folder returns the absolute path of the scenario's folder, which is unpacked into private if it is a zip file.
func (s *playbook) folder(sc *scenario.Scenario, private string) (string, error) {
	switch {
	case sc.Dir != "":
		return filepath.Abs(sc.Dir)
	case sc.Archive == "":
		return "", errors.New("the scenario has no folder of its own")
	}
	dir := filepath.Join(private, "scenario")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, sc.Unpack(dir)
}

// inventory is what ansible reads as a YAML inventory; JSON is YAML. Passwords are in a private file, never on a command
// line.
func (s *playbook) inventory(env *verb.Env) (map[string]any, error) {
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

func addresses(env *verb.Env, name string) []string {
	var out []string
	if name == nodesInventory {
		for _, n := range env.Plan.Target.Nodes {
			if n.Address != "" {
				out = append(out, n.Address)
			}
		}
		return out
	}
	if name == cvmsInventory {
		for _, n := range env.Plan.Target.Nodes {
			if n.CVM != "" {
				out = append(out, n.CVM)
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

func (s *playbook) extra(env *verb.Env) map[string]any {
	extra := map[string]any{"output_directory": env.Dir}
	if h := env.Plan.Target.Hypervisor; h != "" {
		extra["hypervisor"] = h
	}
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
