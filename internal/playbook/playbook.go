package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
)

// Names under which an inventory holds the target's hosts and their storage controllers. A VM group of the same name is hidden
// by them, as in X-Ray.
const (
	NodesInventory = "nodes"
	CVMsInventory  = "cvms"
)

// Playbook is a playbook of the scenario and the VM groups on which it runs.
type Playbook struct {
	Filename  string // in the scenario's folder
	Inventory []string
	User      string
	Password  string
	Variables map[string]any
	Forks     int // hosts at a time
}

// Run runs the playbook with what ansible needs in a private folder, which it removes.
func (p *Playbook) Run(ctx context.Context, env *verb.Env) error {
	// If this program is killed, files with passwords are removed with the journal.
	if err := os.MkdirAll(env.Private, 0o700); err != nil {
		return err
	}
	private, err := os.MkdirTemp(env.Private, "playbook-")
	if err == nil {
		private, err = filepath.Abs(private)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(private)
	folder, err := p.folder(env.Scenario, private)
	if err != nil {
		return err
	}
	inventory, err := p.inventory(env)
	if err != nil {
		return err
	}
	hosts, variables := filepath.Join(private, "inventory.json"), filepath.Join(private, "variables.json")
	if err := writeJSON(hosts, inventory); err != nil {
		return err
	}
	if err := writeJSON(variables, p.extra(env)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "ansible-playbook", "--inventory", hosts, "--extra-vars", "@"+variables,
		"--forks", strconv.Itoa(p.Forks), filepath.Join(folder, p.Filename))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "ANSIBLE_HOST_KEY_CHECKING=False", "ANSIBLE_RETRY_FILES_ENABLED=False")
	return Run(ctx, env, cmd)
}

// folder returns the absolute path of the scenario's folder, which is unpacked into private if it is a zip file.
func (p *Playbook) folder(sc *scenario.Scenario, private string) (string, error) {
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
func (p *Playbook) inventory(env *verb.Env) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range p.Inventory {
		hosts := map[string]any{}
		for _, address := range addresses(env, name) {
			hosts[address] = map[string]any{}
		}
		if len(hosts) == 0 {
			return nil, fmt.Errorf("%q has no host with an address", name)
		}
		all[strings.ReplaceAll(name, " ", "_")] = map[string]any{"hosts": hosts,
			"vars": map[string]any{"ansible_user": p.User, "ansible_password": p.Password}}
	}
	return all, nil
}

func addresses(env *verb.Env, name string) []string {
	var out []string
	if name == NodesInventory {
		for _, n := range env.Plan.Target.Nodes {
			if n.Address != "" {
				out = append(out, n.Address)
			}
		}
		return out
	}
	if name == CVMsInventory {
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

func (p *Playbook) extra(env *verb.Env) map[string]any {
	extra := map[string]any{"output_directory": env.Dir}
	if h := env.Plan.Target.Hypervisor; h != "" {
		extra["hypervisor"] = h
	}
	maps.Copy(extra, p.Variables)
	return extra
}

func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
