package state

import (
	"fmt"
	"slices"
	"time"
)

// CreatePoint makes a recovery point of VMs, running or not.
func (p *points) CreatePoint(name, kind string, expires time.Time, vmIDs []string) (task, pointID string, err error) {
	r := &RecoveryPoint{ID: NewID(), Name: name, Kind: kind, Expires: expires}
	var entities []Entity
	err = p.change(func(d *Data) error {
		if len(vmIDs) == 0 {
			return Invalidf("vmRecoveryPoints: at least one VM is required")
		}
		for _, id := range vmIDs {
			vm := d.VM(id)
			if vm == nil {
				return Missing("VM", id)
			}
			r.VMs = append(r.VMs, PointVM{ID: NewID(), VMID: id})
			entities = append(entities, Entity{id, RelVM, vm.Name})
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	entities = append(entities, Entity{r.ID, RelPoint, name})
	task, err = p.begin(job{
		operation: "CreateRecoveryPoint", description: "Create recovery point", entities: entities,
		do: func() error {
			for i := range r.VMs {
				if err := p.capture(&r.VMs[i]); err != nil {
					return err
				}
			}
			return p.change(func(d *Data) error {
				if r.Created = p.Now(); r.Name == "" {
					r.Name = "snapshot-" + r.Created.Format("20060102150405")
				}
				d.Points = append(d.Points, r)
				return nil
			})
		},
	})
	return task, r.ID, err
}

// capture copies one VM. A machine that runs goes on writing: each disk is consistent after a crash, as far as its file is.
func (p *points) capture(point *PointVM) error {
	defer p.only(point.VMID)()
	if err := p.change(func(d *Data) error {
		vm := d.VM(point.VMID)
		if vm == nil {
			return Missing("VM", point.VMID)
		}
		point.VM = copyVM(vm)
		return nil
	}); err != nil {
		return err
	}
	return p.copyDisks(point.VM.Disks)
}

// copyDisks replaces the ids of disks by those of copies.
func (p *base) copyDisks(disks []Disk) error {
	for i, d := range disks {
		if d.CDROM && d.ImageID == "" {
			continue
		}
		id := NewID()
		if err := p.options.Disks.Copy(d.ID, id, d.SizeBytes); err != nil {
			return fmt.Errorf("copy disk %s:%d: %w", d.Bus, d.Index, err)
		}
		disks[i].ID = id
	}
	return nil
}

// RestorePoint makes new VMs, off, of a recovery point or of one VM in it. The new VMs' ids are among the task's entities.
func (p *points) RestorePoint(pointVMIDs []string, name string) (string, error) {
	var from []PointVM
	if err := p.change(func(d *Data) error {
		for _, id := range pointVMIDs {
			v := d.PointVM(id)
			if v == nil {
				return Missing("VM recovery point", id)
			}
			from = append(from, *v)
		}
		return nil
	}); err != nil {
		return "", err
	}
	var made []*VM
	var entities []Entity
	for _, v := range from {
		vm := copyVM(&v.VM)
		vm.ID, vm.Power, vm.HostID, vm.BIOS, vm.Generation, vm.Version = NewID(), Off, "", NewID(), NewID(), 0
		if name != "" {
			vm.Name = name
		}
		made = append(made, &vm)
		entities = append(entities, Entity{vm.ID, RelVM, vm.Name})
	}
	return p.begin(job{
		operation: "RestoreRecoveryPoint", description: "Restore recovery point", entities: entities,
		do: func() error {
			for _, vm := range made {
				if err := p.copyDisks(vm.Disks); err != nil {
					return err
				}
				if err := p.change(func(d *Data) error {
					for i := range vm.NICs {
						nic, err := d.newNIC(NICSpec{SubnetID: vm.NICs[i].SubnetID})
						if err != nil {
							return err
						}
						vm.NICs[i] = nic
					}
					vm.Created = p.Now()
					vm.Updated = vm.Created
					d.VMs = append(d.VMs, vm)
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// Revert makes the disks of a VM what they were at a recovery point. A VM that runs is powered off before, as Prism does.
func (p *points) Revert(id, pointVMID string, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	var from PointVM
	if err := p.change(func(d *Data) error {
		v := d.PointVM(pointVMID)
		if v == nil {
			return Missing("VM recovery point", pointVMID)
		}
		if v.VMID != id {
			return Invalidf("vmRecoveryPointExtId: %s is of another VM", pointVMID)
		}
		from = *v
		return nil
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmRevert", description: "Revert VM", entities: []Entity{{id, RelVM, name}, {pointVMID, RelPointVM, ""}},
		do: func() error {
			defer p.only(id)()
			p.powerOff(id, false)
			disks := slices.Clone(from.VM.Disks)
			if err := p.copyDisks(disks); err != nil {
				return err
			}
			var old []Disk
			p.Read(func(d *Data) {
				if vm := d.VM(id); vm != nil {
					old = vm.Disks
				}
			})
			if err := p.replaceDisks(id, disks); err != nil {
				p.discard(disks)
				return err
			}
			p.discard(old)
			return nil
		},
	})
}

// DeletePoint removes a recovery point, or one VM of it: the id may be either's.
func (p *points) DeletePoint(id string) (string, error) {
	if err := p.change(func(d *Data) error {
		if d.Point(id) == nil && d.PointVM(id) == nil {
			return Missing("recovery point", id)
		}
		return nil
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "DeleteRecoveryPoint", description: "Delete recovery point", entities: []Entity{{id, RelPoint, ""}},
		do: func() error {
			var gone []Disk
			_ = p.change(func(d *Data) error {
				for _, r := range d.Points {
					r.VMs = slices.DeleteFunc(r.VMs, func(v PointVM) bool {
						if r.ID != id && v.ID != id {
							return false
						}
						gone = append(gone, v.VM.Disks...)
						return true
					})
				}
				d.Points = slices.DeleteFunc(d.Points, func(r *RecoveryPoint) bool { return len(r.VMs) == 0 })
				return nil
			})
			p.discard(gone)
			return nil
		},
	})
}
