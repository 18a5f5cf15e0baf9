package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// builder makes VMs.
type builder struct {
	cluster   *cluster
	settings  settings
	templates *templates
	seeds     *seeds
	addresses *address.Allocator
	memory    *memory
	locks     *target.KeyLocks // by VM
	remover   *remover         // of what a failed call made
}

// blueprint is a VM that is about to be made.
type blueprint struct {
	tag    target.Tag
	spec   target.VMSpec
	record domain.Record
	node   *node
	pool   *storage.Pool
	accel  domain.Accelerator
	from   *template
	disks  []blueprintDisk
}

// blueprintDisk is a disk, and how its volume is made.
type blueprintDisk struct {
	role   string // "sda", "sdb"
	format string
	make   func(ctx context.Context, b *blueprint, name string) error
}

// Create creates powered-off VMs from templates.
func (m *builder) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	for _, b := range plans {
		if err := m.planDisks(b); err != nil {
			m.addresses.Release(ids(plans)...)
			return nil, fmt.Errorf("create vm %q: %w", b.spec.Name, err)
		}
	}
	return m.buildAll(ctx, plans)
}

// plan checks what can be known before anything is made, and gives each VM its identity and address.
func (m *builder) plan(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]*blueprint, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	m.cluster.runs.add(tag)
	s, err := m.cluster.survey(ctx)
	if err != nil {
		return nil, err
	}
	hosts := map[string]*blueprint{} // what all VMs of a node share
	plans := make([]*blueprint, len(specs))
	for i, spec := range specs {
		b, err := m.planOne(ctx, s, tag, spec, hosts)
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
		used = append(used, one.record.VM.Addresses...)
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

func (m *builder) planOne(ctx context.Context, s *survey, tag target.Tag, spec target.VMSpec,
	hosts map[string]*blueprint) (*blueprint, error) {
	n, err := m.cluster.node(ctx, spec.NodeID)
	if err != nil {
		return nil, err
	}
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	id := target.VMID(tag.Mark(), spec.Name)
	if s.vms[id] != nil {
		return nil, errors.New("it exists already")
	}
	if err := s.down[n.ID]; err != nil {
		return nil, fmt.Errorf("node %q does not answer: %w", n.ID, err)
	}
	host := hosts[n.ID]
	if host == nil {
		host = &blueprint{}
		if host.pool, err = n.store.Pool(ctx); err != nil {
			return nil, err
		}
		if host.accel, err = n.accelerator(ctx, m.settings); err != nil {
			return nil, err
		}
		hosts[n.ID] = host
	}
	b := &blueprint{tag: tag, spec: spec, node: n, pool: host.pool, accel: host.accel}
	if b.from, err = m.templates.get(spec.Template); err != nil {
		return nil, err
	}
	b.record = domain.Record{
		VM: target.VM{
			ID: id, Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: n.ID, Disks: []target.Disk{},
			Power: target.PowerOff,
		},
		Template: spec.Template, VCPUs: max(1, spec.VCPUs), Topology: spec.Topology, RAMBytes: spec.RAMBytes, MAC: domain.MAC(id),
		Bases: b.from.bases(tag.Mark()), Created: time.Now().UTC(),
	}
	return b, nil
}

// ramBytesMin is less than any kernel boots with.
const ramBytesMin = 32 << 20

func checkSpec(spec target.VMSpec) error {
	if !utf8.ValidString(spec.Name) || !utf8.ValidString(spec.Group) {
		return errors.New("name is not valid UTF-8")
	}
	if len(spec.DiskBytes) > domain.DisksMax-1 {
		return fmt.Errorf("%d disks, want at most %d", len(spec.DiskBytes), domain.DisksMax-1)
	}
	for _, size := range spec.DiskBytes {
		if size <= 0 || size%512 != 0 {
			return fmt.Errorf("disk of %d bytes, want a multiple of 512", size)
		}
	}
	if spec.RAMBytes < ramBytesMin {
		return fmt.Errorf("%d bytes of memory, want at least %d", spec.RAMBytes, ramBytesMin)
	}
	return nil
}

// planDisks gives a new VM the system disk of its template, and empty data disks.
func (m *builder) planDisks(b *blueprint) error {
	if b.from.volume != "" {
		format := m.settings.diskFormat
		if m.settings.clones == clonesLinked {
			format = storage.QCOW2
		}
		b.disks = append(b.disks, blueprintDisk{"sda", format, func(ctx context.Context, b *blueprint, name string) error {
			return m.makeSystem(ctx, b.pool, name, b.from)
		}})
	}
	for i, size := range b.spec.DiskBytes {
		format := m.settings.diskFormat
		b.addData(i, size, format, func(ctx context.Context, b *blueprint, name string) error {
			return b.pool.Create(ctx, storage.Volume{Name: name, Format: format, SizeBytes: size})
		})
	}
	return nil
}

// byID is where udev puts a SCSI disk of QEMU's, in front of its serial number.
const byID = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_"

// addData adds the i-th data disk: the first is sdb. A distribution gives such names in the order in which its drivers finish, which
// varies, so there the disk is found by its serial number. Guests of bragg image build have no udev, and keep the order.
func (b *blueprint) addData(i int, size int64, format string, make func(context.Context, *blueprint, string) error) {
	role := target.DiskName(i + 1)
	b.disks = append(b.disks, blueprintDisk{role, format, make})
	data := target.Disk{Device: "/dev/" + role, SizeBytes: size}
	if b.from.kernel == nil {
		data.Path = byID + domain.SerialOf(i+1)
	}
	b.record.VM.Disks = append(b.record.VM.Disks, data)
}

// buildAll makes all VMs, or removes what it made.
func (m *builder) buildAll(ctx context.Context, plans []*blueprint) ([]target.VM, error) {
	defer m.addresses.Release(ids(plans)...) // by then the domains record which addresses are taken
	err := target.Each(ctx, len(plans), func(i int) error {
		ended := target.Observe(ctx, plans[i].spec.Name)
		err := m.build(ctx, plans[i])
		ended(err)
		if err != nil {
			return fmt.Errorf("create vm %q: %w", plans[i].spec.Name, err)
		}
		return nil
	})
	vms := make([]target.VM, len(plans))
	for i, b := range plans {
		vms[i] = b.record.VM.Copy()
	}
	if err == nil {
		return vms, nil
	}
	// Also for a caller that was cancelled, no VM is left of a call that failed.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), virsh.ChangeLimit)
	defer cancel()
	if len(plans) > 0 {
		err = errors.Join(err, m.remover.remove(clean, plans[0].tag, vms, ids(plans)))
	}
	return nil, err
}

// build makes a VM, the domain first: it names the owner of the volumes.
func (m *builder) build(ctx context.Context, b *blueprint) error {
	b.record.Seeded = m.seeds.possible()
	d, err := m.describe(b)
	if err != nil {
		return err
	}
	mark := b.tag.Mark()
	if err := m.memory.keep(remembered{Mark: mark, Node: b.node.ID, Record: b.record}); err != nil {
		return err
	}
	if err := b.node.domains.Define(ctx, d); err != nil {
		return err
	}
	if err := m.templates.upload(ctx, b.pool, mark, b.from); err != nil {
		return err
	}
	for _, disk := range b.disks {
		if err := disk.make(ctx, b, storage.VolumeName(mark, b.record.VM.ID, disk.role)); err != nil {
			return fmt.Errorf("make disk %s: %w", disk.role, err)
		}
	}
	return m.seeds.create(ctx, b.pool, mark, b.record)
}

// describe turns a blueprint into a domain.
func (m *builder) describe(b *blueprint) (domain.Domain, error) {
	id, mark := b.record.VM.ID, b.tag.Mark()
	metadata, err := domain.NewMetadata(b.tag, b.record)
	d := domain.Domain{
		Type: b.accel.Kind, CPUMode: m.settings.cpu, Name: domain.Name(id, b.spec.Name), UUID: id, Metadata: metadata,
		RAMBytes: b.record.RAMBytes, VCPUs: b.record.VCPUs, Topology: b.record.Topology, Guest: &domain.Guest{MAC: b.record.MAC},
	}
	if k := b.from.kernel; k != nil {
		d.Kernel, d.Cmdline = b.pool.File(storage.VolumeName(mark, k.digest, "kernel")), k.cmdline
		d.Initrd = b.pool.File(storage.VolumeName(mark, k.digest, "initrd"))
	}
	for _, one := range b.disks {
		index := domain.DiskIndex(one.role)
		d.Disks = append(d.Disks, domain.Disk{
			Index: index, Path: b.pool.File(storage.VolumeName(mark, id, one.role)), Format: one.format, Cache: m.settings.cache, Boot: index == 0,
		})
	}
	if b.record.Seeded {
		// Where the system needs no disk the seed takes the place of sda, so that data begins at sdb; elsewhere it is a CD drive,
		// which takes no such name.
		seed := domain.Disk{Path: b.pool.File(storage.VolumeName(mark, id, "seed")), Format: storage.Raw, Cache: "writeback", ReadOnly: true}
		if b.from.kernel == nil {
			seed.Index, seed.CDROM = domain.DisksMax, true
		}
		d.Disks = append(d.Disks, seed)
	}
	if bridge, ok := strings.CutPrefix(m.settings.network, "bridge:"); ok {
		d.Guest.Bridge = bridge
	} else {
		d.Guest.Network = m.settings.network
	}
	return d, err
}
