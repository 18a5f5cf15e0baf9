// Package task makes single changes of VMs as tasks of a vCenter and waits for them. It decides nothing: owners are checked by
// its callers.
package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/hardware"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// VMs makes changes of VMs.
type VMs struct{ *vcenter.Client }

type object = types.ManagedObjectReference

// Reconfigure changes settings of a VM.
func (m VMs) Reconfigure(ctx context.Context, vm object, spec types.VirtualMachineConfigSpec) error {
	_, err := m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.ReconfigVM_Task(ctx, m.Client, &types.ReconfigVM_Task{This: vm, Spec: spec})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	return err
}

// Create makes a VM in a folder.
func (m VMs) Create(ctx context.Context, folder, pool object, spec types.VirtualMachineConfigSpec) error {
	_, err := m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.CreateVM_Task(ctx, m.Client, &types.CreateVM_Task{This: folder, Pool: pool, Config: spec})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	return err
}

// Clone copies a VM or template into a folder.
func (m VMs) Clone(ctx context.Context, from, folder object, name string, spec types.VirtualMachineCloneSpec) (object, error) {
	result, err := m.Run(ctx, vcenter.Task{Limit: vcenter.CopyMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.CloneVM_Task(ctx, m.Client, &types.CloneVM_Task{This: from, Folder: folder, Name: name, Spec: spec})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	if err != nil {
		return object{}, err
	}
	vm, ok := result.(object)
	if !ok {
		return object{}, fmt.Errorf("clone %q: the task returned no VM", name)
	}
	return vm, nil
}

// Destroy removes a VM with its files. One that is gone is removed.
func (m VMs) Destroy(ctx context.Context, vm object) error {
	_, err := m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.Destroy_Task(ctx, m.Client, &types.Destroy_Task{This: vm})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	if err != nil && !vcenter.Gone(err) && errors.Is(err, vcenter.ErrLost) {
		if _, state := m.State(ctx, vm); vcenter.Gone(state) {
			return nil
		}
	}
	if vcenter.Gone(err) {
		return nil
	}
	return err
}

// State reads the power state of a VM.
func (m VMs) State(ctx context.Context, vm object) (types.VirtualMachinePowerState, error) {
	var now mo.VirtualMachine
	err := m.Collector().RetrieveOne(ctx, vm, []string{"runtime.powerState"}, &now)
	return now.Runtime.PowerState, err
}

// Devices reads the devices of a VM.
func (m VMs) Devices(ctx context.Context, vm object) (hardware.Devices, error) {
	var now mo.VirtualMachine
	if err := m.Collector().RetrieveOne(ctx, vm, []string{"config.hardware.device"}, &now); err != nil {
		return hardware.Devices{}, err
	}
	if now.Config == nil {
		return hardware.Devices{}, ErrUnreadable
	}
	return hardware.Devices{VirtualDeviceList: now.Config.Hardware.Device}, nil
}

// ErrUnreadable says that vCenter does not show the settings of a VM, as of one that is being made.
var ErrUnreadable = errors.New("the vCenter shows no settings of it")

// On starts a VM on a host. A VM that is on is fine: another party was faster.
func (m VMs) On(ctx context.Context, vm, host object) error {
	return m.power(ctx, vm, types.VirtualMachinePowerStatePoweredOn, func(ctx context.Context) (object, error) {
		target.Together(ctx)
		res, err := methods.PowerOnVM_Task(ctx, m.Client, &types.PowerOnVM_Task{This: vm, Host: &host})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	})
}

// Off cuts the power of a VM. One that is off or gone is fine.
func (m VMs) Off(ctx context.Context, vm object) error {
	err := m.power(ctx, vm, types.VirtualMachinePowerStatePoweredOff, func(ctx context.Context) (object, error) {
		res, err := methods.PowerOffVM_Task(ctx, m.Client, &types.PowerOffVM_Task{This: vm})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	})
	if vcenter.Gone(err) {
		return nil
	}
	return err
}

func (m VMs) power(ctx context.Context, vm object, to types.VirtualMachinePowerState, start func(context.Context) (object, error)) error {
	_, err := m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: start, Done: func(ctx context.Context) bool {
		now, err := m.State(ctx, vm)
		return err == nil && now == to
	}})
	return err
}

// Move moves a VM to another host, as vMotion does. MigrateVM_Task is the older call, which not every vCenter has.
func (m VMs) Move(ctx context.Context, vm, host, pool object) error {
	return m.relocate(ctx, vm, types.VirtualMachineRelocateSpec{Host: &host, Pool: &pool}, func(now *mo.VirtualMachine) bool {
		return now.Runtime.Host != nil && *now.Runtime.Host == host
	})
}

// Store moves the files of a VM to another datastore, as Storage vMotion does.
func (m VMs) Store(ctx context.Context, vm, datastore object) error {
	return m.relocate(ctx, vm, types.VirtualMachineRelocateSpec{Datastore: &datastore}, func(now *mo.VirtualMachine) bool {
		return len(now.Datastore) == 1 && now.Datastore[0] == datastore
	})
}

func (m VMs) relocate(ctx context.Context, vm object, spec types.VirtualMachineRelocateSpec, there func(now *mo.VirtualMachine) bool) error {
	_, err := m.Run(ctx, vcenter.Task{
		Limit: vcenter.CopyMax,
		Done: func(ctx context.Context) bool {
			var now mo.VirtualMachine
			return m.Collector().RetrieveOne(ctx, vm, []string{"runtime.host", "datastore"}, &now) == nil && there(&now)
		},
		Start: func(ctx context.Context) (object, error) {
			res, err := methods.RelocateVM_Task(ctx, m.Client, &types.RelocateVM_Task{This: vm, Spec: spec})
			if err != nil {
				return object{}, err
			}
			return res.Returnval, nil
		},
	})
	return err
}
