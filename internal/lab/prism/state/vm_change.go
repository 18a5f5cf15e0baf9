package state

import (
	"fmt"
	"slices"
)

// UpdateVM changes the configuration of a VM: change gets a copy, and may refuse.
func (p *vms) UpdateVM(id string, match int, change func(d *Data, vm *VM) error) (string, error) {
	return p.ApplyVM(id, match, change, "")
}

// ApplyVM is UpdateVM with a transition of its power afterwards, if it is not "".
func (p *vms) ApplyVM(id string, match int, change func(d *Data, vm *VM) error, to Transition) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	if err := p.change(func(d *Data) error { // the same check as the task's, so that faults are reported at once
		trial := copyVM(d.VM(id))
		return change(d, &trial)
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmUpdate", description: "Update VM", entities: []Entity{{id, RelVM, name}},
		do: func() error {
			defer p.only(id)()
			err := p.change(func(d *Data) error {
				vm := d.VM(id)
				if vm == nil {
					return Missing("VM", id)
				}
				next := copyVM(vm)
				if err := change(d, &next); err != nil {
					return err
				}
				next.Version, next.Updated = vm.Version+1, p.Now()
				*vm = next
				return nil
			})
			if err != nil || to == "" {
				return err
			}
			return p.transit(id, to, "")
		},
	})
}

func copyVM(vm *VM) VM {
	c := *vm
	c.Affinity, c.Categories = slices.Clone(vm.Affinity), slices.Clone(vm.Categories)
	c.Disks, c.NICs = slices.Clone(vm.Disks), slices.Clone(vm.NICs)
	return c
}

// AddDisk adds a disk to a VM and returns the id of the task.
func (p *vms) AddDisk(id string, s DiskSpec, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	if err := p.change(func(d *Data) error {
		if vm := d.VM(id); s.Index >= 0 && slices.ContainsFunc(vm.Disks, func(o Disk) bool { return o.Bus == bus(s) && o.Index == s.Index }) {
			return refuse(Busy, "the address %s:%d is in use", bus(s), s.Index)
		}
		return d.checkDisk(s)
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmDiskCreate", description: "Create disk", entities: []Entity{{id, RelVM, name}},
		do: func() error {
			defer p.only(id)()
			var work VM
			if err := p.change(func(d *Data) error {
				vm := d.VM(id)
				if vm == nil {
					return Missing("VM", id)
				}
				work = copyVM(vm)
				return nil
			}); err != nil {
				return err
			}
			if err := p.addDisk(&work, s); err != nil {
				return err
			}
			return p.replaceDisks(id, work.Disks)
		},
	})
}

// RemoveDisk removes a disk with its contents.
func (p *vms) RemoveDisk(id, diskID string, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	if err := p.change(func(d *Data) error {
		if !slices.ContainsFunc(d.VM(id).Disks, func(o Disk) bool { return o.ID == diskID }) {
			return Missing("disk", diskID)
		}
		return nil
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmDiskDelete", description: "Delete disk", entities: []Entity{{id, RelVM, name}},
		do: func() error {
			defer p.only(id)()
			err := p.change(func(d *Data) error {
				vm := d.VM(id)
				if vm == nil {
					return Missing("VM", id)
				}
				vm.Disks = slices.DeleteFunc(slices.Clone(vm.Disks), func(o Disk) bool { return o.ID == diskID })
				vm.Version++
				return nil
			})
			_ = p.options.Disks.Remove(diskID)
			return err
		},
	})
}

func (p *vms) replaceDisks(id string, disks []Disk) error {
	return p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil {
			return Missing("VM", id)
		}
		vm.Disks, vm.Updated = disks, p.Now()
		vm.Version++
		return nil
	})
}

// CloneVM makes a VM with copies of the disks of another. change may alter what it copies from the source; it may be nil.
func (p *vms) CloneVM(id string, match int, change func(s *VMSpec)) (task, cloneID string, err error) {
	if _, err := p.checkVM(id, match); err != nil {
		return "", "", err
	}
	var s VMSpec
	p.Read(func(d *Data) {
		s = specOf(d, d.VM(id))
		s.Name += "-clone"
	})
	if change != nil {
		change(&s)
	}
	return p.createAs(s, "VmClone", id)
}

// createAs is CreateVM for a VM that copies another, which must not change meanwhile.
func (p *vms) createAs(s VMSpec, operation, sourceID string) (task, vmID string, err error) {
	vm := &VM{ID: NewID(), HAPriority: s.HAPriority, BIOS: NewID(), Generation: NewID()}
	if err := p.change(func(d *Data) error {
		if err := d.checkSpec(s); err != nil {
			return err
		}
		vm.describe(s)
		for _, n := range s.NICs {
			nic, err := d.newNIC(n)
			if err != nil {
				return err
			}
			vm.NICs = append(vm.NICs, nic)
		}
		return nil
	}); err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: operation, description: fmt.Sprintf("%s to %s", operation, s.Name),
		entities: []Entity{{sourceID, RelVM, s.Name}, {vm.ID, RelVM, s.Name}},
		do: func() error {
			defer p.only(sourceID)()
			return p.materialize(vm, s.Disks)
		},
	})
	return task, vm.ID, err
}

// specOf describes a VM so that a copy can be made: its disks as sources, new addresses.
func specOf(d *Data, vm *VM) VMSpec {
	s := VMSpec{
		Name: vm.Name, Description: vm.Description, Sockets: vm.Sockets, CoresPerSocket: vm.CoresPerSocket, ThreadsPerCore: vm.ThreadsPerCore,
		MemoryBytes: vm.MemoryBytes, ClusterID: d.Cluster.ID, Affinity: slices.Clone(vm.Affinity), Categories: slices.Clone(vm.Categories),
		UserData: vm.UserData, MetaData: vm.MetaData, DataSource: vm.DataSource, HAPriority: vm.HAPriority,
	}
	for _, disk := range vm.Disks {
		if disk.CDROM && disk.ImageID == "" {
			s.Disks = append(s.Disks, DiskSpec{Bus: disk.Bus, Index: disk.Index, CDROM: true})
			continue
		}
		s.Disks = append(s.Disks, DiskSpec{Bus: disk.Bus, Index: disk.Index, CDROM: disk.CDROM, SizeBytes: disk.SizeBytes, ContainerID: disk.ContainerID, DiskID: disk.ID})
	}
	for _, n := range vm.NICs {
		s.NICs = append(s.NICs, NICSpec{SubnetID: n.SubnetID})
	}
	return s
}
