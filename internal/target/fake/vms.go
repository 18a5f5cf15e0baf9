package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// Create makes powered-off VMs, all or none.
func (t *Target) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.create(ctx, tag, specs, Operation{Name: "Create"})
}

func (t *Target) create(ctx context.Context, tag target.Tag, specs []target.VMSpec, op Operation) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	made := map[string]*machine{}
	var vms []target.VM
	for _, spec := range specs {
		op.Subject = spec.Name
		ended := target.Observe(ctx, spec.Name)
		m, err := t.make(ctx, tag, spec, op)
		ended(err)
		if err == nil && made[m.vm.ID] != nil {
			err = errors.New("it exists already")
		}
		if err != nil {
			return nil, fmt.Errorf("create vm %q: %w", spec.Name, err)
		}
		made[m.vm.ID] = m
		vms = append(vms, m.value())
	}
	for id, m := range made {
		t.machines[id] = m
	}
	return vms, nil
}

func (t *Target) make(ctx context.Context, tag target.Tag, spec target.VMSpec, op Operation) (*machine, error) {
	if err := t.record(ctx, op); err != nil {
		return nil, err
	}
	if err := t.nodeIsOn(spec.NodeID); err != nil {
		return nil, err
	}
	if _, known := t.config.Templates[spec.Template]; len(t.config.Templates) > 0 && !known {
		return nil, fmt.Errorf("no template %q", spec.Template)
	}
	id := vmID(tag.Mark(), spec.Name)
	if t.machines[id] != nil {
		return nil, errors.New("it exists already")
	}
	n := len(t.operations) // increases with every machine, and is the same in every run
	m := &machine{mark: tag.Mark(), template: spec.Template, vm: target.VM{
		ID: id, Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: spec.NodeID, Disks: []target.Disk{},
		Addresses: []string{fmt.Sprintf("198.18.%d.%d", n>>8&0xff, n&0xff)}, // the range reserved for benchmarks
	}}
	for i, size := range spec.DiskBytes {
		if size <= 0 {
			return nil, fmt.Errorf("disk of %d bytes", size)
		}
		m.vm.Disks = append(m.vm.Disks, target.Disk{Device: "/dev/" + target.DiskName(i+1), SizeBytes: size})
	}
	return m, nil
}

// Delete removes those of the VMs that exist.
func (t *Target) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	t.mu.Lock()
	doomed := map[string]bool{}
	for _, vm := range vms {
		m, err := t.find(tag, vm)
		if err == nil && m != nil {
			err = t.record(ctx, Operation{Name: "Delete", Subject: vm.Name})
		}
		if err != nil {
			t.mu.Unlock()
			return fmt.Errorf("delete vm %q: %w", vm.Name, err)
		}
		doomed[vm.ID] = true
	}
	cycles := t.cut(func(m *machine) bool { return doomed[m.vm.ID] })
	for id := range doomed {
		delete(t.machines, id)
	}
	t.mu.Unlock()
	wait(cycles)
	return nil
}

// PowerOnVMs begins a power cycle of each VM that is off.
func (t *Target) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	return t.each(ctx, tag, vms, Operation{Name: "PowerOnVMs"}, func(m *machine) error {
		if err := t.nodeIsOn(m.vm.NodeID); err != nil || m.cycle != nil {
			return err
		}
		target.Powerless(ctx, m.vm.Name, time.Now())
		m.cycle = &cycle{}
		m.cycle.ctx, m.cycle.cut = context.WithCancel(context.Background())
		return nil
	})
}

// PowerOffVMs cuts the power. A VM that no longer exists is off.
func (t *Target) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	t.mu.Lock()
	var errs []error
	off := map[string]bool{}
	for _, vm := range vms {
		m, err := t.find(tag, vm)
		if err == nil && m != nil {
			err = t.record(ctx, Operation{Name: "PowerOffVMs", Subject: vm.Name})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("power off vm %q: %w", vm.Name, err))
			continue
		}
		off[vm.ID] = true
	}
	cycles := t.cut(func(m *machine) bool { return off[m.vm.ID] })
	t.mu.Unlock()
	wait(cycles)
	return errors.Join(errs...)
}

// AddressOf returns the address that the VM was given; see target.Addresser.
func (t *Target) AddressOf(_ context.Context, vm target.VM) (string, error) {
	return target.FirstAddress(vm)
}

// DialAgent connects to a new agent of the VM, which lives until the connection closes or the power is cut.
func (t *Target) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.record(ctx, Operation{Name: "DialAgent", Subject: vm.Name}); err != nil {
		return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
	}
	m := t.machines[vm.ID]
	switch {
	case m == nil || m.cycle == nil:
		return nil, fmt.Errorf("dial agent of vm %q: powered off", vm.Name)
	case t.serve == nil:
		return nil, fmt.Errorf("dial agent of vm %q: this program gave the target no agents", vm.Name)
	}
	near, far := net.Pipe()
	c, value := m.cycle, m.value()
	c.agents.Go(func() {
		defer far.Close()
		_ = t.serve(c.ctx, far, value) // its result is visible on the near end
	})
	return near, nil
}

// CloneVM copies a VM.
func (t *Target) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, err := t.find(tag, source)
	if err == nil && m == nil {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Template = m.template
		if len(specs[i].DiskBytes) != len(m.vm.Disks) {
			return nil, fmt.Errorf("clone vm %q: clone %q has %d disks, the source %d", source.Name, specs[i].Name,
				len(specs[i].DiskBytes), len(m.vm.Disks))
		}
		for j, size := range specs[i].DiskBytes {
			if size < m.vm.Disks[j].SizeBytes {
				return nil, fmt.Errorf("clone vm %q: disk %d of clone %q is smaller than its source", source.Name, j, specs[i].Name)
			}
		}
	}
	return t.create(ctx, tag, specs, Operation{Name: "CloneVM", Detail: fmt.Sprintf("%s linked=%v", source.Name, linked)})
}

// SnapshotVMs records snapshots.
func (t *Target) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	return t.each(ctx, tag, vms, Operation{Name: "SnapshotVMs", Detail: name}, func(m *machine) error {
		m.snapshots = append(m.snapshots, name)
		return nil
	})
}

// RevertVMs checks that the snapshots exist: disks hold no data.
func (t *Target) RevertVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	return t.each(ctx, tag, vms, Operation{Name: "RevertVMs", Detail: name}, func(m *machine) error {
		switch {
		case m.cycle != nil:
			return errors.New("revert: it is on")
		case !slices.Contains(m.snapshots, name):
			return fmt.Errorf("revert: it has no snapshot %q", name)
		}
		return nil
	})
}

// MigrateVMs moves VMs to a node.
func (t *Target) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	return t.each(ctx, tag, vms, Operation{Name: "MigrateVMs", Detail: nodeID}, func(m *machine) error {
		if err := t.nodeIsOn(nodeID); err != nil {
			return err
		}
		m.vm.NodeID = nodeID
		return nil
	})
}

// Stray moves a VM like another party would: its run did not.
func (t *Target) Stray(name, nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.machines {
		if m.vm.Name == name {
			m.vm.NodeID = nodeID
		}
	}
}

// reportsMax bounds the events of the platform that no watcher has read yet.
const reportsMax = 64

// Report makes the platform report an event now. It is dropped if too many were not read.
func (t *Target) Report(e target.PlatformEvent) {
	e.At = time.Now()
	select {
	case t.reports <- e:
	default:
	}
}

// WatchEvents passes on what Report reports.
func (t *Target) WatchEvents(ctx context.Context, _ target.Tag, see func(target.PlatformEvent)) error {
	for {
		select {
		case e := <-t.reports:
			see(e)
		case <-ctx.Done():
			return nil
		}
	}
}

// RelocateVMs records another datastore.
func (t *Target) RelocateVMs(ctx context.Context, tag target.Tag, vms []target.VM, datastore string) error {
	return t.each(ctx, tag, vms, Operation{Name: "RelocateVMs", Detail: datastore}, func(m *machine) error {
		m.datastore = datastore
		return nil
	})
}

// SetHA records whether VMs are restarted after a node failure.
func (t *Target) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	return t.each(ctx, tag, vms, Operation{Name: "SetHA", Detail: fmt.Sprint(enabled)}, func(m *machine) error {
		m.ha = enabled
		return nil
	})
}

// SetBalancing records whether VMs are moved to balance load.
func (t *Target) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	return t.each(ctx, tag, vms, Operation{Name: "SetBalancing", Detail: fmt.Sprint(enabled)}, func(m *machine) error {
		m.balancing = enabled
		return nil
	})
}

// RunInVM records a command without running it.
func (t *Target) RunInVM(ctx context.Context, vm target.VM, user, command string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.record(ctx, Operation{Name: "RunInVM", Subject: vm.Name, Detail: user + ": " + command}); err != nil {
		return "", fmt.Errorf("run command in vm %q: %w", vm.Name, err)
	}
	if m := t.machines[vm.ID]; m == nil || m.cycle == nil {
		return "", fmt.Errorf("run command in vm %q: powered off", vm.Name)
	}
	return "", nil
}
