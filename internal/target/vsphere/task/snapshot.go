package task

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// Snapshot takes a snapshot without memory.
func (m VMs) Snapshot(ctx context.Context, vm object, name string) (*object, error) {
	result, err := m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.CreateSnapshot_Task(ctx, m.Client, &types.CreateSnapshot_Task{This: vm, Name: label(name)})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	if err != nil {
		return nil, err
	}
	if taken, ok := result.(object); ok {
		return &taken, nil
	}
	taken, err := m.find(ctx, vm, name)
	return &taken, err
}

// label is a name as vCenter takes it: not empty, at most 80 characters, none that XML cannot hold.
func label(name string) string {
	const charactersMax = 80
	var text []rune
	for _, r := range name {
		if r < ' ' || r == 0xFFFD || r == '%' || r == '/' || r == '\\' {
			r = '_'
		}
		text = append(text, r)
	}
	if len(text) == 0 {
		return "bragg"
	}
	return string(text[:min(len(text), charactersMax)])
}

// Revert returns a VM to its latest snapshot of that name.
func (m VMs) Revert(ctx context.Context, vm object, name string) error {
	ref, err := m.find(ctx, vm, name)
	if err != nil {
		return err
	}
	_, err = m.Run(ctx, vcenter.Task{Limit: vcenter.QuickMax, Start: func(ctx context.Context) (object, error) {
		res, err := methods.RevertToSnapshot_Task(ctx, m.Client, &types.RevertToSnapshot_Task{This: ref, SuppressPowerOn: types.NewBool(true)})
		if err != nil {
			return object{}, err
		}
		return res.Returnval, nil
	}})
	return err
}

// find finds the latest snapshot of that name.
func (m VMs) find(ctx context.Context, vm object, name string) (object, error) {
	var now mo.VirtualMachine
	if err := m.Collector().RetrieveOne(ctx, vm, []string{"snapshot"}, &now); err != nil {
		return object{}, err
	}
	var latest *types.VirtualMachineSnapshotTree
	var look func(trees []types.VirtualMachineSnapshotTree)
	look = func(trees []types.VirtualMachineSnapshotTree) {
		for i := range trees {
			one := &trees[i]
			if one.Name == label(name) && (latest == nil || !one.CreateTime.Before(latest.CreateTime)) {
				latest = one
			}
			look(one.ChildSnapshotList)
		}
	}
	if now.Snapshot != nil {
		look(now.Snapshot.RootSnapshotList)
	}
	if latest == nil {
		return object{}, fmt.Errorf("it has no snapshot %q", name)
	}
	return latest.Snapshot, nil
}
