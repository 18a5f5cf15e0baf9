package vsphere

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
)

// operations are those on VMs that exist. Each works on a survey of its own.
type operations struct {
	site   *site
	locks  *target.KeyLocks // by VM
	agents *agents
	guests *guests
}

// selection is the VMs of one call. With orGone, those that do not exist are skipped, else they are an error.
type selection struct {
	tag    target.Tag
	vms    []target.VM
	orGone bool
}

// each acts on VMs as they are now, and holds the lock of each meanwhile.
func (o *operations) each(ctx context.Context, action string, s selection, do func(one *vmInfo) error) error {
	list, err := o.site.find(ctx, s.tag, s.vms, s.orGone)
	if err != nil {
		return fmt.Errorf("%s VMs: %w", action, err)
	}
	return o.site.onEach(ctx, action, list, func(one *vmInfo) error {
		defer o.locks.Lock(one.id)()
		return do(one)
	})
}

// PowerOnVMs starts VMs on the hosts where they are; running ones are skipped.
func (o *operations) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	surveyed := time.Now()
	return o.each(ctx, "power on", selection{tag, vms, false}, func(one *vmInfo) error {
		if one.host == nil {
			return errors.New("the vCenter does not know its host")
		}
		if err := one.host.answers(); err != nil {
			return err
		}
		if one.power() == target.PowerOn {
			return nil
		}
		target.Powerless(ctx, one.owner.Record.VM.Name, surveyed)
		if err := o.renew(ctx, one); err != nil {
			return err
		}
		return o.site.vms().On(ctx, one.ref, one.host.ref)
	})
}

// PowerOffVMs cuts the power of VMs; those that are off or gone are skipped.
func (o *operations) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	return o.each(ctx, "power off", selection{tag, vms, true}, func(one *vmInfo) error {
		defer o.agents.HangUp(one.id)
		return o.site.off(ctx, one)
	})
}

// renew replaces the identity of a guest that another program made: its authority is gone.
func (o *operations) renew(ctx context.Context, one *vmInfo) error {
	if !o.guests.stale(one.owner.Record) {
		return nil
	}
	devices, err := o.site.vms().Devices(ctx, one.ref)
	if err != nil {
		return err
	}
	texts, err := o.guests.settingsOf(one.owner.Record, devices.MAC())
	if err != nil {
		return err
	}
	if err := o.site.vms().Reconfigure(ctx, one.ref, types.VirtualMachineConfigSpec{ExtraConfig: record.Options(texts)}); err != nil {
		return err
	}
	o.guests.plantedFor(one.id)
	return nil
}

// SnapshotVMs takes snapshots of disks, without memory.
func (o *operations) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	return o.each(ctx, "snapshot", selection{tag, vms, false}, func(one *vmInfo) error {
		_, err := o.site.vms().Snapshot(ctx, one.ref, name)
		return err
	})
}

// MigrateVMs moves VMs to another host: running ones by vMotion.
func (o *operations) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	to, err := o.site.host(ctx, nodeID)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	if err := to.usable(); err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	return o.each(ctx, "migrate", selection{tag, vms, false}, func(one *vmInfo) error {
		if one.host != nil && one.host.ref == to.ref {
			return nil
		}
		return o.site.vms().Move(ctx, one.ref, to.ref, o.site.pool.ref)
	})
}

// RelocateVMs moves the disks of VMs to another datastore, of running ones by Storage vMotion.
func (o *operations) RelocateVMs(ctx context.Context, tag target.Tag, vms []target.VM, datastore string) error {
	to, err := o.site.findDatastore(ctx, datastore)
	if err != nil {
		return fmt.Errorf("move VMs to datastore %q: %w", datastore, err)
	}
	return o.each(ctx, "relocate", selection{tag, vms, false}, func(one *vmInfo) error {
		return o.site.vms().Store(ctx, one.ref, to.ref)
	})
}

// off cuts the power of a VM that has some.
func (t *site) off(ctx context.Context, one *vmInfo) error {
	if one.state == types.VirtualMachinePowerStatePoweredOff {
		return nil
	}
	return t.vms().Off(ctx, one.ref)
}
