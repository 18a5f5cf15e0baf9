package faulttest

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
)

// vmCount is how many VMs a life makes, and then as many clones of one.
const vmCount = 2

// life does what a run does with VMs, as far as the target offers it, and deletes them.
func life(ctx context.Context, t target.Target, tag target.Tag) error {
	specs, err := specsOf(ctx, t, "OLTP")
	if err != nil {
		return err
	}
	vms, err := t.Create(ctx, tag, specs)
	if err != nil {
		return err
	}
	want := len(vms)
	for _, step := range []func() error{
		func() error { return place(ctx, t, tag, vms) },
		func() error { return t.(target.VMPower).PowerOnVMs(ctx, tag, vms) },
		func() error { return change(ctx, t, tag, vms) },
		func() error {
			n, err := cloneFirst(ctx, t, tag, vms)
			want += n
			return err
		},
		func() error { return t.(target.VMPower).PowerOffVMs(ctx, tag, vms) },
		func() error { return revert(ctx, t, tag, vms) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	owned, err := t.Owned(ctx, tag)
	if err != nil {
		return err
	}
	if len(owned) != want {
		return fmt.Errorf("%d VMs are there, want %d: %+v", len(owned), want, owned)
	}
	return t.Delete(ctx, tag, owned)
}

// specsOf describes VMs with one small disk, spread over the nodes.
func specsOf(ctx context.Context, t target.Target, group string) ([]target.VMSpec, error) {
	inventory, err := t.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	template := "any"
	if !inventory.AnyTemplate {
		template = inventory.Templates[0]
	}
	all := make([]target.VMSpec, vmCount)
	for i := range all {
		all[i] = target.VMSpec{
			Name: fmt.Sprintf("%s-%04d", group, i+1), Group: group, Ordinal: i, Template: template, VCPUs: 1, RAMBytes: 64 << 20,
			DiskBytes: []int64{4 << 20}, NodeID: inventory.Nodes[i%len(inventory.Nodes)].ID,
		}
	}
	return all, nil
}

func place(ctx context.Context, t target.Target, tag target.Tag, vms []target.VM) error {
	p, ok := t.(target.Placer)
	if !ok {
		return nil
	}
	if err := p.SetHA(ctx, tag, vms, false); err != nil {
		return err
	}
	return p.SetBalancing(ctx, tag, vms, false)
}

const snapshotName = "before"

// change takes snapshots and moves a VM.
func change(ctx context.Context, t target.Target, tag target.Tag, vms []target.VM) error {
	if s, ok := t.(target.Snapshotter); ok {
		if err := s.SnapshotVMs(ctx, tag, vms, snapshotName); err != nil {
			return err
		}
	}
	m, ok := t.(target.Migrator)
	if !ok {
		return nil
	}
	return m.MigrateVMs(ctx, tag, vms[:1], vms[1].NodeID)
}

func cloneFirst(ctx context.Context, t target.Target, tag target.Tag, vms []target.VM) (int, error) {
	c, ok := t.(target.Cloner)
	if !ok {
		return 0, nil
	}
	specs, err := specsOf(ctx, t, "CLONE")
	if err != nil {
		return 0, err
	}
	made, err := c.CloneVM(ctx, tag, vms[0], specs, false)
	return len(made), err
}

func revert(ctx context.Context, t target.Target, tag target.Tag, vms []target.VM) error {
	r, ok := t.(target.Reverter)
	if !ok {
		return nil
	}
	return r.RevertVMs(ctx, tag, vms, snapshotName)
}
