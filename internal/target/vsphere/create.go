package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/vsphere/hardware"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/target/vsphere/task"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// builder makes VMs.
type builder struct {
	site      *site
	templates *templates
	guests    *guests
	addresses *address.Allocator
	locks     *target.KeyLocks // by VM
	remover   *remover         // of what a failed call made
}

// blueprint is a VM that is about to be made.
type blueprint struct {
	tag    target.Tag
	spec   target.VMSpec
	record record.Record
	host   *host
	from   *origin
	made   types.ManagedObjectReference
}

// origin is what VMs are cloned from: a template or a VM.
type origin struct {
	place
	devices  hardware.Devices
	vm       bool                          // not a template: clones get its overrides of DRS and HA
	snapshot *types.ManagedObjectReference // clones share its blocks; nil: they are copies
	disks    []record.Slot                 // its data disks, which clones get; a template has none
}

// Create creates powered-off VMs from templates.
func (m *builder) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	return m.buildAll(ctx, tag, plans, func(b *blueprint) (*origin, error) { return m.templates.get(ctx, b.spec.Template) })
}

// plan checks what can be known before anything is made, and gives each VM its identity and address.
func (m *builder) plan(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]*blueprint, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	m.site.runs.add(tag)
	m.site.made.add(tag)
	s, err := m.site.survey(ctx)
	if err != nil {
		return nil, err
	}
	plans := make([]*blueprint, len(specs))
	for i, spec := range specs {
		b, err := m.planOne(s, tag, spec)
		if err != nil {
			return nil, fmt.Errorf("create vm %q: %w", spec.Name, err)
		}
		if slices.ContainsFunc(plans[:i], func(o *blueprint) bool { return o.record.VM.ID == b.record.VM.ID }) {
			return nil, fmt.Errorf("create vm %q: it is listed twice", spec.Name)
		}
		plans[i] = b
	}
	var used []string
	for _, one := range s.vms {
		used = append(used, one.owner.Record.VM.Addresses...)
	}
	addresses, err := m.addresses.Reserve(ctx, used, ids(plans))
	if err != nil {
		return nil, err
	}
	for i, a := range addresses {
		if a != "" {
			plans[i].record.VM.Addresses = []string{a}
		}
	}
	return plans, nil
}

func ids(plans []*blueprint) []string {
	list := make([]string, len(plans))
	for i, b := range plans {
		list[i] = b.record.VM.ID
	}
	return list
}

func (m *builder) planOne(s *survey, tag target.Tag, spec target.VMSpec) (*blueprint, error) {
	h, err := pick(s.hosts, spec.NodeID)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(h.usable(), h.sees(m.site.datastore)); err != nil {
		return nil, err
	}
	if t := spec.Topology; t.Set() && (t.Threads > 1 || t.Sockets*t.Cores != spec.VCPUs) {
		return nil, fmt.Errorf("vSphere gives VMs no threads per core: %s for %d vCPUs is not possible", t, spec.VCPUs)
	}
	id := target.VMID(tag.Mark(), spec.Name)
	if s.vms[id] != nil {
		return nil, errors.New("it exists already")
	}
	return &blueprint{tag: tag, spec: spec, host: h, record: record.Record{
		VM: target.VM{
			ID: id, Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: h.ref.Value, Disks: []target.Disk{}, Power: target.PowerOff,
		},
		Template: spec.Template, VCPUs: max(1, spec.VCPUs), Topology: spec.Topology, RAMBytes: spec.RAMBytes, Created: time.Now().UTC(),
	}}, nil
}

// buildAll makes all VMs, or removes what it made.
func (m *builder) buildAll(
	ctx context.Context, tag target.Tag, plans []*blueprint, from func(b *blueprint) (*origin, error),
) ([]target.VM, error) {
	defer m.addresses.Release(ids(plans)...) // by then the VMs record which addresses are taken
	names, errs := make([]string, len(plans)), make([]error, len(plans))
	err := target.Each(ctx, len(plans), func(i int) error {
		b := plans[i]
		names[i] = b.spec.Name
		ended := target.Observe(ctx, b.spec.Name)
		if b.from, errs[i] = from(b); errs[i] == nil {
			errs[i] = m.build(ctx, b)
		}
		ended(errs[i])
		return nil
	})
	err = m.site.vc.ExplainEach("create", names, errs, err)
	if err == nil {
		err = m.likeSource(ctx, plans)
	}
	vms := make([]target.VM, len(plans))
	for i, b := range plans {
		vms[i] = b.record.VM.Copy()
	}
	if err == nil {
		return vms, nil
	}
	// Also for a caller that was cancelled, no VM is left of a call that failed.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), vcenter.QuickMax)
	defer cancel()
	return nil, errors.Join(err, m.remover.undo(clean, tag, plans))
}

// likeSource gives clones of a VM its overrides of DRS and HA: a VM that is added to a group stays on its host as the others do.
func (m *builder) likeSource(ctx context.Context, plans []*blueprint) error {
	if len(plans) == 0 || !plans[0].from.vm {
		return nil
	}
	var all []types.ManagedObjectReference
	for _, b := range plans {
		all = append(all, b.made)
	}
	return m.site.drs.Like(ctx, plans[0].from.ref, all)
}

// build clones a VM, then sets what it is: some vCenters do not apply the settings in a clone's specification. What is
// there in the end is read back.
func (m *builder) build(ctx context.Context, b *blueprint) error {
	changes, slots, err := m.planDisks(b)
	if err != nil {
		return err
	}
	backing, err := m.backing(ctx)
	if err != nil {
		return err
	}
	extra, err := m.extra(b, "")
	if err != nil {
		return err
	}
	config := m.config(b, extra)
	config.DeviceChange = append(changes, b.from.devices.Connect(backing)...)
	ref, err := m.clone(ctx, b, config)
	if err != nil {
		return err
	}
	b.made = ref
	vm := place{ref, b.spec.Name}
	devices, err := m.site.vms().Devices(ctx, vm.ref)
	if err != nil {
		return err
	}
	b.record.Slots = slots
	if err := m.grow(ctx, b, vm, devices); err != nil {
		return err
	}
	if devices, err = m.site.vms().Devices(ctx, vm.ref); err != nil {
		return err
	}
	if b.record.VM.Disks, err = devices.Data(slots); err != nil {
		return err
	}
	b.record.Seeded = m.guests.possible()
	if extra, err = m.extra(b, devices.MAC()); err != nil {
		return err
	}
	if err := m.site.vms().Reconfigure(ctx, ref, m.config(b, extra)); err != nil {
		return err
	}
	if err := m.verify(ctx, b, vm); err != nil {
		return err
	}
	m.guests.plantedFor(b.record.VM.ID)
	return nil
}

// planDisks plans the data disks that the clone gets beside those of its source.
func (m *builder) planDisks(b *blueprint) ([]types.BaseVirtualDeviceConfigSpec, []record.Slot, error) {
	if b.from.disks != nil {
		return nil, b.from.disks, nil
	}
	return b.from.devices.AddDisks(b.spec.DiskBytes, m.site.settings.disks, m.site.datastore.ref)
}

// extra is ExtraConfig of the VM: with its owner at first, and with the identity of its guest once its network card is
// known.
func (m *builder) extra(b *blueprint, mac string) ([]types.BaseOptionValue, error) {
	texts := map[string]string{"disk.EnableUUID": "TRUE"}
	if mac != "" {
		identity, err := m.guests.settingsOf(b.record, mac)
		if err != nil {
			return nil, err
		}
		maps.Copy(texts, identity)
	}
	owner, err := record.Settings(b.tag, b.record)
	return append(record.Options(texts), owner...), err
}

func (m *builder) config(b *blueprint, extra []types.BaseOptionValue) types.VirtualMachineConfigSpec {
	const mib = 1 << 20
	c := types.VirtualMachineConfigSpec{
		InstanceUuid: b.record.VM.ID, NumCPUs: int32(b.record.VCPUs), MemoryMB: max(4, b.record.RAMBytes/mib/4*4), // a multiple of 4
		Annotation: record.Annotation(b.tag), ExtraConfig: extra,
	}
	if b.record.Topology.Set() {
		c.NumCoresPerSocket = int32(b.record.Topology.Cores)
	}
	return c
}

// clone copies the source. A VM of that name that is there already is of another owner or of a dead call: it is not touched.
func (m *builder) clone(ctx context.Context, b *blueprint, config types.VirtualMachineConfigSpec) (types.ManagedObjectReference, error) {
	name := record.Name(b.tag.Mark(), b.record.VM.ID, b.spec.Name)
	spec := types.VirtualMachineCloneSpec{
		Config: &config,
		Location: types.VirtualMachineRelocateSpec{
			Host: &b.host.ref, Pool: &m.site.pool.ref, Datastore: &m.site.datastore.ref,
		},
	}
	if b.from.snapshot != nil {
		spec.Snapshot, spec.Location.DiskMoveType = b.from.snapshot, string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
	}
	ref, err := m.site.vms().Clone(ctx, b.from.ref, m.site.folder.ref, name, spec)
	switch {
	case vcenter.Taken(err):
		return types.ManagedObjectReference{}, &diag.Error{
			Code: "vsphere-name-taken", Exit: diag.ExitRefused, Message: fmt.Sprintf("a VM %q exists already and is not touched", name),
			Hint: "remove or rename it in the vSphere Client",
		}
	case errors.Is(err, vcenter.ErrLost):
		return m.lost(ctx, name)
	}
	return ref, err
}

// lost finds the clone of a task that the vCenter does not know any more.
func (m *builder) lost(ctx context.Context, name string) (types.ManagedObjectReference, error) {
	ref, err := object.NewSearchIndex(m.site.vc.Client).FindChild(ctx, object.NewFolder(m.site.vc.Client, m.site.folder.ref), name)
	if err == nil && ref == nil {
		err = vcenter.ErrLost
	}
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	return ref.Reference(), nil
}

// grow makes data disks of a clone as large as its specification.
func (m *builder) grow(ctx context.Context, b *blueprint, vm place, devices hardware.Devices) error {
	var changes []types.BaseVirtualDeviceConfigSpec
	for i, slot := range b.record.Slots {
		d := devices.Disk(slot)
		if d == nil || d.CapacityInBytes >= b.spec.DiskBytes[i] || d.CapacityInKB*1024 >= b.spec.DiskBytes[i] {
			continue
		}
		if b.from.snapshot != nil {
			return fmt.Errorf("disk %d of a linked clone cannot be larger than its source: make full clones", i)
		}
		d.CapacityInBytes, d.CapacityInKB = b.spec.DiskBytes[i], (b.spec.DiskBytes[i]+1023)/1024
		changes = append(changes, hardware.Edited(d))
	}
	if len(changes) == 0 {
		return nil
	}
	return m.site.vms().Reconfigure(ctx, vm.ref, types.VirtualMachineConfigSpec{DeviceChange: changes})
}

// backing is the network as a network card is connected to it.
func (m *builder) backing(ctx context.Context) (types.BaseVirtualDeviceBackingInfo, error) {
	var n object.NetworkReference
	switch at := m.site.network; at.ref.Type {
	case "DistributedVirtualPortgroup":
		n = object.NewDistributedVirtualPortgroup(m.site.vc.Client, at.ref)
	case "OpaqueNetwork":
		n = object.NewOpaqueNetwork(m.site.vc.Client, at.ref)
	default:
		n = object.NewNetwork(m.site.vc.Client, at.ref)
	}
	return n.EthernetCardBackingInfo(ctx)
}

// verify reads a new VM back: vCenter must show its owner, its CPUs, its memory and its disks.
func (m *builder) verify(ctx context.Context, b *blueprint, vm place) error {
	var now mo.VirtualMachine
	err := m.site.vc.Collector().RetrieveOne(ctx, vm.ref,
		[]string{"name", "config.instanceUuid", "config.extraConfig", "config.hardware", "runtime.host"}, &now)
	if err != nil {
		return err
	}
	if now.Config == nil {
		return task.ErrUnreadable
	}
	owner := record.Read(record.Seen{Ref: vm.ref.Value, Name: now.Name, InstanceUUID: now.Config.InstanceUuid, Extra: now.Config.ExtraConfig})
	want := m.config(b, nil)
	var not string
	switch {
	case owner.Mark != b.tag.Mark() || owner.Record.VM.ID != b.record.VM.ID:
		not = "its owner"
	case now.Config.Hardware.NumCPU != want.NumCPUs:
		not = fmt.Sprintf("%d vCPUs, but %d", want.NumCPUs, now.Config.Hardware.NumCPU)
	case int64(now.Config.Hardware.MemoryMB) != want.MemoryMB:
		not = fmt.Sprintf("%d MiB of memory, but %d", want.MemoryMB, now.Config.Hardware.MemoryMB)
	case now.Runtime.Host != nil && now.Runtime.Host.Value != b.host.ref.Value:
		not = fmt.Sprintf("it on host %q", b.host.name)
	}
	for i, size := range b.spec.DiskBytes {
		if not == "" && b.record.VM.Disks[i].SizeBytes < size {
			not = fmt.Sprintf("disk %d with %d bytes, but %d", i, size, b.record.VM.Disks[i].SizeBytes)
		}
	}
	if not != "" {
		return &diag.Error{Code: "vsphere-not-applied", Exit: diag.ExitUnavailable, Message: "the vCenter accepted the settings and does not show " + not}
	}
	return nil
}
