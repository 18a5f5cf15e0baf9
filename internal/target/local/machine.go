package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/target"
)

// machine is one VM that this process knows. Its lock is held during every change of its power, place or disks, so that
// calls on one VM run one after the other.
type machine struct {
	id   string
	mark string

	mu      sync.Mutex
	record  record
	process *process // nil: powered off, or not started by this Target
	gone    bool     // deleted
}

// machines are the VMs in a folder, with those that this process knows.
type machines struct {
	store *store

	mu     sync.Mutex
	all    map[string]*machine // by id
	closed bool
}

// find returns the VM if it exists and carries the tag. The error is errGone if it does not exist.
func (ms *machines) find(tag target.Tag, id string) (*machine, error) {
	if err := ms.store.check(id, tag); err != nil {
		return nil, err
	}
	o, err := ms.store.readOwner(id)
	if err != nil {
		return nil, errGone
	}
	ms.mu.Lock()
	m, closed := ms.all[id], ms.closed
	if m == nil && !closed {
		m = &machine{id: id, mark: o.Mark}
		ms.all[id] = m
	}
	ms.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.record.complete() {
		// Not read yet, or read while another call was creating it.
		m.record = ms.store.readRecord(o)
	}
	return m, nil
}

// usable returns why a VM can no longer be used. The caller holds the lock of m.
func (ms *machines) usable(m *machine) error {
	if m.gone {
		return errGone
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.closed {
		return errClosed
	}
	return nil
}

var errClosed = errors.New("the target is closed")

// power returns the current power state. The caller holds the lock.
func (m *machine) power() target.PowerState {
	if m.process != nil && m.process.alive() {
		return target.PowerOn
	}
	return target.PowerOff
}

// vm returns the VM as a value. The caller holds the lock.
func (m *machine) vm() target.VM {
	vm := m.record.VM
	vm.Power = m.power()
	return vm
}

// close prevents further use, and returns the VMs that this process knows.
func (ms *machines) close() []*machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.closed = true
	return slices.Collect(maps.Values(ms.all))
}

// known returns a VM that this process knows, or nil.
func (ms *machines) known(id string) *machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.all[id]
}

// on returns the VMs of a node that this process knows.
func (ms *machines) on(nodeID string) []*machine {
	ms.mu.Lock()
	all := slices.Collect(maps.Values(ms.all))
	ms.mu.Unlock()
	return slices.DeleteFunc(all, func(m *machine) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.record.VM.NodeID != nodeID
	})
}

// each acts on all VMs, which must exist and carry the tag, and holds the lock of each during its call.
func (ms *machines) each(ctx context.Context, action string, tag target.Tag, vms []target.VM, do func(m *machine) error) error {
	list, err := ms.resolve(tag, vms, false)
	if err != nil {
		return fmt.Errorf("%s VMs: %w", action, err)
	}
	return onEach(ctx, action, vms, func(i int) error {
		list[i].mu.Lock()
		defer list[i].mu.Unlock()
		if err := ms.usable(list[i]); err != nil {
			return err
		}
		return do(list[i])
	})
}

// onEach calls do with the index of every VM, several concurrently, and returns all errors. It starts no call after ctx has
// ended.
func onEach(ctx context.Context, action string, vms []target.VM, do func(i int) error) error {
	return target.Each(ctx, len(vms), func(i int) error {
		ended := target.Observe(ctx, vms[i].Name)
		err := do(i)
		ended(err)
		if err != nil {
			return fmt.Errorf("%s vm %q: %w", action, vms[i].Name, err)
		}
		return nil
	})
}

// Create makes powered-off VMs with sparse disk files.
func (t *Target) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	return t.create(ctx, tag, specs, func(_ context.Context, path string, _ int, sizeBytes int64) error {
		return makeSparse(path, sizeBytes)
	})
}

// makeDisk makes the file of a data disk.
type makeDisk func(ctx context.Context, path string, index int, sizeBytes int64) error

// create makes VMs whose disks disk makes. On an error it removes everything it made.
func (t *Target) create(ctx context.Context, tag target.Tag, specs []target.VMSpec, disk makeDisk) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := t.checkSpec(spec); err != nil {
			return nil, fmt.Errorf("create vm %q: %w", spec.Name, err)
		}
	}
	vms := make([]target.VM, len(specs))
	for i, spec := range specs {
		vms[i] = target.VM{ID: vmID(tag.Mark(), spec.Name), Name: spec.Name}
	}
	made := make([]bool, len(specs))
	err := onEach(ctx, "create", vms, func(i int) error {
		o := owner{
			Format: 1, ID: vms[i].ID, Name: vms[i].Name, Mark: tag.Mark(), Controller: tag.Controller, Run: tag.Run,
			Created: time.Now().UTC(),
		}
		if err := t.machines.store.claim(o); err != nil {
			return err
		}
		made[i] = true
		vm, err := t.build(ctx, o, specs[i], disk)
		if err == nil {
			vms[i] = vm
		}
		return err
	})
	if err == nil {
		return vms, nil
	}
	for i := range vms {
		if made[i] {
			t.address.release(vms[i].ID)
			err = errors.Join(err, t.machines.store.remove(vms[i].ID))
		}
	}
	return nil, err
}

const disksMax = 128

func (t *Target) checkSpec(spec target.VMSpec) error {
	if err := t.check(spec.NodeID); err != nil {
		return err
	}
	if !utf8.ValidString(spec.Name) || !utf8.ValidString(spec.Group) {
		return errors.New("name is not valid UTF-8")
	}
	if len(spec.DiskBytes) > disksMax {
		return fmt.Errorf("%d disks, want at most %d", len(spec.DiskBytes), disksMax)
	}
	for _, size := range spec.DiskBytes {
		if size <= 0 {
			return fmt.Errorf("disk of %d bytes", size)
		}
	}
	return nil
}

// build makes a VM, except its owner file.
func (t *Target) build(ctx context.Context, o owner, spec target.VMSpec, disk makeDisk) (target.VM, error) {
	address, err := t.newAddress(o.ID)
	if err != nil {
		return target.VM{}, err
	}
	if err := os.Mkdir(t.machines.store.path(o.ID), 0o700); err != nil {
		return target.VM{}, fmt.Errorf("make folder: %w", err)
	}
	vm := target.VM{
		ID: o.ID, Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: spec.NodeID,
		Addresses: []string{address}, Disks: []target.Disk{}, Power: target.PowerOff,
	}
	for i, size := range spec.DiskBytes {
		name := target.DiskName(i + 1)
		path := t.machines.store.path(o.ID, name)
		if err := disk(ctx, path, i, size); err != nil {
			return target.VM{}, fmt.Errorf("make disk %s: %w", name, err)
		}
		vm.Disks = append(vm.Disks, target.Disk{Device: "/dev/" + name, Path: path, SizeBytes: size})
	}
	if err := t.machines.store.writeRecord(o.ID, record{VM: vm, Spec: spec}); err != nil {
		return target.VM{}, fmt.Errorf("record vm: %w", err)
	}
	if t.detached != nil { // the machine may lose power during the run, and the VM must still exist afterwards
		if err := syncFolder(t.machines.store.path(o.ID)); err != nil {
			return target.VM{}, fmt.Errorf("record vm: %w", err)
		}
	}
	return vm, nil
}

// newAddress returns the address of a new VM.
func (t *Target) newAddress(id string) (string, error) {
	if t.detached != nil {
		return t.detached.Address, nil
	}
	return t.address.reserve(id, "")
}

// Delete powers off and removes those of the VMs that exist.
func (t *Target) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	machines, err := t.resolve(tag, vms, true)
	if err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	t.killAll(machines)
	sweep(machines)
	return onEach(ctx, "delete", vms, func(i int) error {
		m := byID(machines, vms[i].ID)
		if m == nil {
			return nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		t.kill(m)
		if err := t.machines.store.remove(m.id); err != nil {
			return err
		}
		m.gone = true
		t.address.release(m.id)
		t.groups.remove(m.id)
		t.forget(m.id)
		return nil
	})
}

func (ms *machines) forget(id string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.all, id)
}

func byID(machines []*machine, id string) *machine {
	for _, m := range machines {
		if m.id == id {
			return m
		}
	}
	return nil
}

// resolve returns the machines of vms, all of which must carry the tag. With orGone it skips VMs that do not exist;
// otherwise they are an error.
func (ms *machines) resolve(tag target.Tag, vms []target.VM, orGone bool) ([]*machine, error) {
	var machines []*machine
	for _, vm := range vms {
		m, err := ms.find(tag, vm.ID)
		if orGone && errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, err)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// Owned lists the VMs that carry the tag, including those that another process left behind.
func (ms *machines) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	owners, err := ms.store.owned(tag)
	if err != nil {
		return nil, err
	}
	marked := markedProcesses()
	vms := []target.VM{}
	for _, o := range owners {
		m, err := ms.find(tag, o.ID)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list vm %q: %w", o.Name, err)
		}
		m.mu.Lock()
		vm := m.vm()
		if len(marked[m.processMark()]) > 0 {
			vm.Power = target.PowerOn
		}
		m.mu.Unlock()
		vms = append(vms, vm)
	}
	return vms, nil
}
