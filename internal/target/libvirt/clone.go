package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// CloneVM creates powered-off copies of a VM's disks at one instant. Linked clones share unmodified blocks with the
// source, and need storage that is shared by the source's node and theirs. A data disk of a clone may be larger than
// its source, never smaller.
func (m *builder) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	vms, err := m.clone(ctx, tag, source, specs, linked)
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	return vms, nil
}

func (m *builder) clone(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	if virsh.IsUUID(source.ID) {
		defer m.locks.Lock(source.ID)()
	}
	list, err := m.cluster.find(ctx, tag, []target.VM{source}, false)
	if err != nil {
		return nil, err
	}
	from := list[0]
	if err := fitsSource(from, specs); err != nil {
		return nil, err
	}
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Template = from.record.Template
	}
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	bases := from.home().layers()
	// Disks that are written meanwhile cannot be copied, and those that clones read must never be written again.
	if linked || from.power() == target.PowerOn {
		if bases, err = snapshot(ctx, from.home()); err != nil {
			m.addresses.Release(ids(plans)...)
			return nil, err
		}
	}
	o, err := readOrigin(ctx, from, bases, linked)
	for i := 0; err == nil && i < len(plans); i++ {
		if err = m.planClone(plans[i], o); err != nil {
			err = fmt.Errorf("clone %q: %w", plans[i].spec.Name, err)
		}
	}
	if err != nil {
		m.addresses.Release(ids(plans)...)
		return nil, err
	}
	return m.buildAll(ctx, plans)
}

func fitsSource(from *vmInfo, specs []target.VMSpec) error {
	disks := from.record.VM.Disks
	for _, spec := range specs {
		if len(spec.DiskBytes) != len(disks) {
			return fmt.Errorf("clone %q has %d disks, the source %d", spec.Name, len(spec.DiskBytes), len(disks))
		}
		for i, size := range spec.DiskBytes {
			if size < disks[i].SizeBytes {
				return fmt.Errorf("disk %d of clone %q is smaller than its source", i, spec.Name)
			}
		}
	}
	return nil
}

// origin is what clones are copied from. It is read once for all of them.
type origin struct {
	from   *vmInfo
	pool   *storage.Pool
	bases  []layer
	stored map[string]storage.Stored // volumes of the layers, by name, which the pool knows from then on
	linked bool
}

func readOrigin(ctx context.Context, from *vmInfo, bases []layer, linked bool) (*origin, error) {
	o := &origin{from: from, bases: bases, stored: map[string]storage.Stored{}, linked: linked}
	var err error
	if o.pool, err = from.home().node.store.Pool(ctx); err != nil {
		return nil, err
	}
	for _, base := range bases {
		if linked && domain.DiskIndex(base.device) != 0 {
			continue // its name is enough
		}
		if o.stored[base.volume], err = o.pool.Find(ctx, base.volume); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// planClone gives a clone copies of the source's disks.
func (m *builder) planClone(b *blueprint, o *origin) error {
	if o.pool.Storage() != b.pool.Storage() {
		return fmt.Errorf("node %q does not see the storage of node %q, where the source is", b.node.ID, o.from.home().node.ID)
	}
	if o.linked {
		b.record.Bases = append(b.record.Bases, o.from.record.Bases...)
	}
	for _, base := range o.bases {
		if o.linked {
			b.record.Bases = append(b.record.Bases, chain(base)...)
		}
		index := domain.DiskIndex(base.device)
		if index == 0 { // the system disk is as large as that of the source
			b.disks = append(b.disks, m.copyOf(o, base, o.stored[base.volume].Capacity))
			continue
		}
		if index > len(b.spec.DiskBytes) {
			return fmt.Errorf("the source has a disk %s that it was not created with", base.device)
		}
		size := b.spec.DiskBytes[index-1]
		one := m.copyOf(o, base, size)
		b.addData(index-1, size, one.format, one.make)
	}
	slices.Sort(b.record.Bases)
	b.record.Bases = slices.Compact(b.record.Bases)
	return nil
}

// chain lists a layer and those below it, all of the same VM. Some numbers may not exist, which is harmless.
func chain(top layer) []string {
	o, _ := storage.ParseVolumeName(top.volume)
	names := []string{storage.VolumeName(o.Mark, o.ID, top.device)}
	for n := 1; n <= topLayer([]layer{top}); n++ {
		names = append(names, storage.VolumeName(o.Mark, o.ID, top.device+"."+strconv.Itoa(n)))
	}
	return names
}

// copyOf makes a disk from a layer. A full copy is made by the source's node, whose pool knows the layer.
func (m *builder) copyOf(o *origin, base layer, size int64) blueprintDisk {
	if o.linked {
		return blueprintDisk{base.device, storage.QCOW2, func(ctx context.Context, b *blueprint, name string) error {
			v := storage.Volume{Name: name, Format: storage.QCOW2, SizeBytes: size, Base: b.pool.File(base.volume), BaseFormat: base.format}
			return b.pool.Create(ctx, v)
		}}
	}
	format := m.settings.diskFormat
	return blueprintDisk{base.device, format, func(ctx context.Context, _ *blueprint, name string) error {
		return o.pool.Copy(ctx, storage.Volume{Name: name, Format: format, SizeBytes: size}, base.volume)
	}}
}
