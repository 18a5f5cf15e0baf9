package playbook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// machine is one host of an inventory: a VM, a node, or the host of several VMs.
type machine struct {
	name  string // in the inventory
	login target.Login
	vms   []target.VM // that it is, or has
}

// subject is how events and errors name the machine.
func (m *machine) subject() string {
	if len(m.vms) == 1 {
		return m.vms[0].Name
	}
	return m.login.Machine
}

// group is the group of its VMs, "" if they are of several.
func (m *machine) group() string {
	if len(m.vms) == 0 || slices.ContainsFunc(m.vms, func(v target.VM) bool { return v.Group != m.vms[0].Group }) {
		return ""
	}
	return m.vms[0].Group
}

// machines are the machines of each group of an inventory, in the order of the step.
type machines map[string][]*machine

func (m machines) all() map[string]*machine {
	named := map[string]*machine{}
	for _, group := range m {
		for _, one := range group {
			named[one.name] = one
		}
	}
	return named
}

// passwords are the secrets of logins, longest first.
func (m machines) passwords() (list []string) {
	for _, one := range m.all() {
		if s := one.login.Password; s != "" { // as text, and as it is in results, which are JSON
			list = append(list, s, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s))
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(list)
}

// machines finds the machines of the inventory and how to log in to them.
func (p *Playbook) machines(ctx context.Context, env *verb.Env) (machines, error) {
	found := machines{}
	for _, name := range p.Inventory {
		var list []*machine
		var err error
		switch name {
		case NodesInventory, CVMsInventory:
			list, err = p.nodes(ctx, env, name == CVMsInventory)
		default:
			list, err = p.vms(ctx, env, name)
		}
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("%q has no host with an address", name)
		}
		if err != nil {
			return nil, err
		}
		found[name] = list
	}
	return found, found.share(p.Inventory)
}

// share makes a machine that several groups name one, with the VMs of all: ansible keeps one bragg_vms for each machine.
func (m machines) share(order []string) error {
	known, groups := map[string]*machine{}, map[string]string{"all": "", "ungrouped": ""}
	for _, group := range order {
		plain := groupName(group)
		if other, taken := groups[plain]; taken && other != group {
			return fmt.Errorf("group %q would be %q in ansible, which is another group there", group, plain)
		}
		groups[plain] = group
		for i, one := range m[group] {
			switch first := known[one.name]; {
			case first == nil:
				known[one.name] = one
			case first != one:
				first.vms = append(first.vms, one.vms...)
				m[group][i] = first
			}
		}
	}
	return nil
}

// groupName is the name of a group in ansible, where names have no blanks.
func groupName(group string) string { return strings.ReplaceAll(group, " ", "_") }

// vms are the machines of a group. VMs that are processes of one host are one machine, on which a playbook runs once.
func (p *Playbook) vms(ctx context.Context, env *verb.Env, group string) (list []*machine, err error) {
	logins, _ := env.Target.(target.GuestLogins)
	known := map[string]*machine{}
	for _, vm := range env.VMs.Of(group) {
		l := target.Login{Machine: vm.Name, User: p.User, Password: p.Password}
		var name string
		switch {
		case logins != nil:
			if l, err = logins.LoginVM(ctx, vm, p.User); err != nil {
				return nil, err
			}
			if name = l.Address; l.Machine != vm.Name {
				name = l.Machine
			}
		case len(vm.Addresses) > 0:
			l.Address, name = vm.Addresses[0], vm.Addresses[0]
		default:
			continue
		}
		if old := known[name]; old != nil && (old.login.Address != l.Address || old.login.Port != l.Port) {
			return nil, fmt.Errorf("two hosts have the name %q: give one of them another name", name)
		}
		if known[name] == nil {
			known[name] = &machine{name: name, login: l}
			list = append(list, known[name])
		}
		known[name].vms = append(known[name].vms, vm)
	}
	return list, nil
}

// nodes are the target's hosts, or their storage controllers. The login is the scenario's, unless the target knows its own.
func (p *Playbook) nodes(ctx context.Context, env *verb.Env, controllers bool) (list []*machine, err error) {
	logins, _ := env.Target.(target.NodeLogins)
	for _, n := range env.Plan.Target.Nodes {
		l := target.Login{Machine: n.Name, Address: n.Address, User: p.User, Password: p.Password}
		name := n.Address
		switch {
		case controllers:
			l.Address, name = n.CVM, n.CVM
		case logins != nil:
			if l, err = logins.LoginNode(ctx, n.ID); err != nil {
				return nil, err
			}
			name = l.Machine
		}
		if l.Address != "" {
			list = append(list, &machine{name: name, login: l})
		}
	}
	return list, nil
}

// inventory is what ansible reads as a YAML inventory; JSON is YAML. Passwords and keys are in private files, never on a command
// line.
func (p *Playbook) inventory(s *settings, m machines) (map[string]any, error) {
	out := map[string]any{"all": map[string]any{"vars": map[string]any{"ansible_python_interpreter": "/usr/bin/python3"}}}
	for group, list := range m {
		hosts := map[string]any{}
		for _, one := range list {
			variables, err := s.variables(one)
			if err != nil {
				return nil, err
			}
			hosts[one.name] = variables
		}
		out[groupName(group)] = map[string]any{"hosts": hosts}
	}
	return out, nil
}

// variables are what ansible must know of a machine, and what playbooks may.
func (s *settings) variables(m *machine) (map[string]any, error) {
	l := m.login
	v := map[string]any{"ansible_host": l.Address}
	if l.Port != 0 {
		v["ansible_port"] = l.Port
	}
	if l.User != "" {
		v["ansible_user"] = l.User
	}
	if l.Password != "" {
		v["ansible_password"], v["ansible_become_password"] = l.Password, l.Password
	}
	options, err := s.options(m)
	if err != nil {
		return nil, err
	}
	var words []string
	if !l.Configured {
		words = []string{"-F", "none"}
	}
	for _, o := range options {
		words = append(words, "-o", o)
	}
	v["ansible_ssh_common_args"] = textio.Shell(words...)
	if len(m.vms) > 0 {
		v["bragg_vms"] = m.vms
	}
	return v, nil
}

// extra are the variables of the step, in front of those that X-Ray adds.
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

// hostKeyLine is the line of a known_hosts file for a machine.
func hostKeyLine(l target.Login) string {
	name := l.Address
	if l.Port != 0 && l.Port != 22 {
		name = fmt.Sprintf("[%s]:%d", l.Address, l.Port)
	}
	return name + " " + l.HostKey + "\n"
}

// sshPath is a path as a value in ssh's configuration, where blanks separate values and % begins a token.
func sshPath(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// options are the options of ssh for a machine: the target's, its key, and the host key that it must show.
func (s *settings) options(m *machine) ([]string, error) {
	options := slices.Clone(m.login.Options)
	if m.login.Password == "" {
		options = append(options, "BatchMode=yes")
	}
	if m.login.Key != "" {
		path, err := s.keep(m.login.Key)
		if err != nil {
			return nil, err
		}
		options = append(options, "IdentityFile="+sshPath(path), "IdentitiesOnly=yes", "IdentityAgent=none")
	}
	switch {
	case m.login.Configured:
	case m.login.HostKey != "":
		path, err := s.keep(hostKeyLine(m.login))
		if err != nil {
			return nil, err
		}
		options = append(options, "UserKnownHostsFile="+sshPath(path), "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes", "UpdateHostKeys=no")
	default:
		// The key that a machine showed first in this run must stay the same until its end.
		options = append(options, "UserKnownHostsFile="+sshPath(s.known), "GlobalKnownHostsFile=none", "StrictHostKeyChecking=accept-new", "UpdateHostKeys=no",
			"HashKnownHosts=no")
	}
	return append(options, "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4", "ForwardAgent=no"), nil
}
