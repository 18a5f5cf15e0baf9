package state

import (
	"fmt"
	"slices"
)

// enforce moves VMs from hosts on which a policy does not let them run, or away from others, as far as hosts can take them. The cluster reports it.
func (d *Data) enforce() {
	for _, vm := range d.VMs {
		if vm.Power != On || d.Host(vm.HostID) == nil || d.allowed(vm, d.Host(vm.HostID)) && !d.crowded(vm) {
			continue
		}
		from := d.hostName(vm)
		if d.move(vm, "") == nil {
			d.report("VmAffinityMigrate", "INFO", "VM migrated by an affinity policy",
				fmt.Sprintf("VM %s was migrated from host %s to host %s", vm.Name, from, d.hostName(vm)), Entity{vm.ID, RelVM, vm.Name})
		}
	}
}

// crowded reports whether an earlier VM from which a policy keeps this one apart runs on its host.
func (d *Data) crowded(vm *VM) bool {
	for _, p := range d.Policies {
		if !p.AntiAffinity || !meet(vm.Categories, p.VMCategories) {
			continue
		}
		for _, other := range d.VMs {
			if other == vm {
				break
			}
			if other.Power == On && other.HostID == vm.HostID && meet(other.Categories, p.VMCategories) {
				return true
			}
		}
	}
	return false
}

// NonCompliant lists the running VMs of a policy that are not where it wants them, and the others.
func (d *Data) NonCompliant(p *Policy) (against, with []*VM) {
	for _, vm := range d.VMs {
		if vm.Power != On || !meet(vm.Categories, p.VMCategories) {
			continue
		}
		if h := d.Host(vm.HostID); p.AntiAffinity && d.crowded(vm) || !p.AntiAffinity && h != nil && !meet(h.Categories, p.HostCategories) {
			against = append(against, vm)
		} else {
			with = append(with, vm)
		}
	}
	return against, with
}

// CategorizeVM adds categories to a VM, or removes them.
func (p *vms) CategorizeVM(id string, categories []string, add bool, match int) (string, error) {
	return p.UpdateVM(id, match, func(d *Data, vm *VM) error {
		if err := d.checkCategories(categories); err != nil {
			return err
		}
		vm.Categories = with(vm.Categories, categories, add)
		d.enforce()
		return nil
	})
}

// CategorizeHost adds categories to a host, or removes them.
func (p *hosts) CategorizeHost(id string, categories []string, add bool) (string, error) {
	name, err := p.checkHost(id)
	if err != nil {
		return "", err
	}
	if err := p.change(func(d *Data) error { return d.checkCategories(categories) }); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "HostCategories", description: "Update categories", entities: []Entity{{id, RelHost, name}},
		do: func() error {
			return p.change(func(d *Data) error {
				h := d.Host(id)
				h.Categories = with(h.Categories, categories, add)
				h.Version++
				d.enforce()
				return nil
			})
		},
	})
}

func with(list, change []string, add bool) []string {
	out := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(change, s) })
	if add {
		out = append(out, change...)
	}
	return out
}

// CreatePolicy makes an affinity policy.
func (p *store) CreatePolicy(policy Policy) (task, id string, err error) {
	policy.ID = NewID()
	if err := p.change(func(d *Data) error {
		if policy.Name == "" {
			return Invalidf("name: required")
		}
		if len(policy.VMCategories) == 0 || len(policy.HostCategories) == 0 && !policy.AntiAffinity {
			return Invalidf("categories: a policy needs those of VMs and of hosts")
		}
		return d.checkCategories(slices.Concat(policy.VMCategories, policy.HostCategories))
	}); err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: "CreatePolicy", description: "Create policy", entities: []Entity{{policy.ID, RelPolicy, policy.Name}},
		do: func() error {
			return p.change(func(d *Data) error {
				policy.Created = p.Now()
				policy.Updated = policy.Created
				d.Policies = append(d.Policies, &policy)
				d.enforce()
				return nil
			})
		},
	})
	return task, policy.ID, err
}

// DeletePolicy removes an affinity policy.
func (p *store) DeletePolicy(id string, match int) (string, error) {
	var name string
	if err := p.change(func(d *Data) error {
		policy := d.Policy(id)
		if policy == nil {
			return Missing("policy", id)
		}
		name = policy.Name
		return checkVersion(policy.Version, match)
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "DeletePolicy", description: "Delete policy", entities: []Entity{{id, RelPolicy, name}},
		do: func() error {
			return p.change(func(d *Data) error {
				d.Policies = slices.DeleteFunc(d.Policies, func(o *Policy) bool { return o.ID == id })
				return nil
			})
		},
	})
}
