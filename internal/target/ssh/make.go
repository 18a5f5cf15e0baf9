package ssh

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// Create makes powered-off VMs with sparse disk files on their nodes.
func (t *Target) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	return t.make(ctx, tag, specs, hostvm.Request{Operation: hostvm.OpCreate})
}

// make makes VMs, all or none.
func (t *Target) make(ctx context.Context, tag target.Tag, specs []target.VMSpec, r hostvm.Request) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	sorted := map[*host][]int{} // indexes of specs
	for i, s := range specs {
		h, err := t.host(s.NodeID)
		if err != nil {
			return nil, fmt.Errorf("create vm %q: %w", s.Name, err)
		}
		sorted[h] = append(sorted[h], i)
	}
	vms := make([]target.VM, len(specs))
	made := make([][]target.VM, len(t.hosts))
	err := t.onHosts(func(n int, h *host) error {
		if len(sorted[h]) == 0 {
			return nil
		}
		mine := r
		mine.Tag = tag
		for _, i := range sorted[h] {
			mine.Specs = append(mine.Specs, specs[i])
		}
		reply, err := h.call(ctx, mine)
		if err == nil && len(reply.VMs) != len(mine.Specs) {
			err = fmt.Errorf("host %q made %d VMs of %d", h.address.Name, len(reply.VMs), len(mine.Specs))
		}
		if err != nil {
			return err
		}
		made[n] = reply.VMs
		for k, i := range sorted[h] {
			vms[i] = reply.VMs[k]
		}
		return nil
	})
	if err != nil {
		undo := context.WithoutCancel(ctx)
		for _, some := range made {
			if len(some) > 0 {
				err = errors.Join(err, t.onVMs(undo, some, hostvm.Request{Operation: hostvm.OpDelete, Tag: tag}))
			}
		}
		return nil, err
	}
	t.remember(tag, vms)
	return vms, nil
}

// CloneVM copies a VM. The host of the source makes clones on the same host; for other hosts, the data of the disks is
// transferred through this machine.
func (t *Target) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	if err := t.checkClones(source, specs); err != nil {
		return nil, err
	}
	var near, far []target.VMSpec
	for _, s := range specs {
		if s.NodeID == source.NodeID {
			near = append(near, s)
		} else {
			far = append(far, s)
		}
	}
	made := map[string]target.VM{}
	var all []target.VM
	err := error(nil)
	if len(near) > 0 {
		all, err = t.make(ctx, tag, near, hostvm.Request{Operation: hostvm.OpClone, VMs: []target.VM{source}, Linked: linked})
	}
	if err == nil && len(far) > 0 {
		var others []target.VM
		if others, err = t.make(ctx, tag, far, hostvm.Request{Operation: hostvm.OpCreate}); err == nil {
			all = append(all, others...)
			err = target.Each(ctx, len(others), func(i int) error { return t.copyDisks(ctx, tag, source, others[i]) })
		}
	}
	if err != nil {
		undo := context.WithoutCancel(ctx)
		return nil, errors.Join(err, t.onVMs(undo, all, hostvm.Request{Operation: hostvm.OpDelete, Tag: tag}))
	}
	for _, vm := range all {
		made[vm.Name] = vm
	}
	clones := make([]target.VM, len(specs))
	for i, s := range specs {
		clones[i] = made[s.Name]
	}
	return clones, nil
}

// checkClones refuses invalid clones before any is made.
func (t *Target) checkClones(source target.VM, specs []target.VMSpec) error {
	if _, err := t.host(source.NodeID); err != nil {
		return fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	for _, s := range specs {
		if len(s.DiskBytes) != len(source.Disks) {
			return fmt.Errorf("clone vm %q: clone %q has %d disks, the source %d", source.Name, s.Name, len(s.DiskBytes), len(source.Disks))
		}
		for i, size := range s.DiskBytes {
			if size < source.Disks[i].SizeBytes {
				return fmt.Errorf("clone vm %q: disk %d of clone %q is smaller than its source", source.Name, i, s.Name)
			}
		}
	}
	return nil
}

// copyDisks copies the data of all disks from one host to another.
func (t *Target) copyDisks(ctx context.Context, tag target.Tag, from, to target.VM) error {
	var clients [2]*hostvm.Client
	for i, vm := range []target.VM{from, to} {
		h, err := t.host(vm.NodeID)
		if err == nil {
			clients[i], err = h.connection(ctx)
		}
		if err != nil {
			return fmt.Errorf("clone vm %q: %w", from.Name, err)
		}
	}
	for i := range from.Disks {
		if err := clients[0].Copy(ctx, hostvm.DiskCopy{Tag: tag, From: from, To: to, Disk: i, Host: clients[1]}); err != nil {
			return fmt.Errorf("clone vm %q: copy disk %d to node %q: %s", from.Name, i, to.NodeID, textio.Line(err.Error()))
		}
	}
	return nil
}
