package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/target"
)

// CloneVM makes powered-off copies of a VM as its disks stand at one instant. Linked clones share the blocks of the
// source that they do not write, and need a storage that the source's node and theirs both see. A data disk of a clone
// may be larger than its source, never smaller.
func (t *Target) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	vms, err := t.clone(ctx, tag, source, specs, linked)
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	return vms, nil
}

func (t *Target) clone(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	if idText.MatchString(source.ID) {
		defer t.lock(source.ID)()
	}
	list, err := t.find(ctx, tag, []target.VM{source}, false)
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
	plans, err := t.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	bases := from.main().layers()
	// Disks that are written meanwhile cannot be copied, and those that clones read must never be written again.
	if linked || from.power() == target.PowerOn {
		if bases, err = t.snapshot(ctx, from.main()); err != nil {
			t.release(ids(plans)...)
			return nil, err
		}
	}
	o, err := readOrigin(ctx, from, bases, linked)
	for i := 0; err == nil && i < len(plans); i++ {
		if err = t.planClone(plans[i], o); err != nil {
			err = fmt.Errorf("clone %q: %w", plans[i].spec.Name, err)
		}
	}
	if err != nil {
		t.release(ids(plans)...)
		return nil, err
	}
	return t.buildAll(ctx, plans)
}

func fitsSource(from *seen, specs []target.VMSpec) error {
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
	from   *seen
	home   *node
	pool   pool
	bases  []layer
	stored map[string]stored // volumes of the layers, by name, which the pool knows from then on
	linked bool
}

func readOrigin(ctx context.Context, from *seen, bases []layer, linked bool) (*origin, error) {
	o := &origin{from: from, home: from.main().node, bases: bases, stored: map[string]stored{}, linked: linked}
	var err error
	if o.pool, err = o.home.readPool(ctx, o.home.pool); err != nil {
		return nil, err
	}
	for _, base := range bases {
		if linked && diskIndex(base.device) != 0 {
			continue // nothing but its name is of interest
		}
		if o.stored[base.volume], err = o.home.sees(ctx, o.pool, base.volume); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// planClone gives a clone copies of the source's disks.
func (t *Target) planClone(b *blueprint, o *origin) error {
	if t.storage(o.home, o.pool) != t.storage(b.node, b.pool) {
		return fmt.Errorf("node %q does not see the storage of node %q, where the source is", b.node.id, o.home.id)
	}
	if o.linked {
		b.record.Bases = append(b.record.Bases, o.from.record.Bases...)
	}
	for _, base := range o.bases {
		if o.linked {
			b.record.Bases = append(b.record.Bases, chain(base)...)
		}
		index := diskIndex(base.device)
		if index == 0 { // the system disk is as large as that of the source
			b.disks = append(b.disks, t.copyOf(o, base, o.stored[base.volume].Capacity))
			continue
		}
		if index > len(b.spec.DiskBytes) {
			return fmt.Errorf("the source has a disk %s that it was not made with", base.device)
		}
		size := b.spec.DiskBytes[index-1]
		one := t.copyOf(o, base, size)
		b.addData(index-1, size, one.format, one.make)
	}
	slices.Sort(b.record.Bases)
	b.record.Bases = slices.Compact(b.record.Bases)
	return nil
}

// chain lists a layer and those below it, all of the same VM. Some numbers may not exist, which does no harm.
func chain(top layer) []string {
	o, _ := parseVolumeName(top.volume)
	names := []string{volumeName(o.mark, o.id, top.device)}
	for n := 1; n <= topLayer([]layer{top}); n++ {
		names = append(names, volumeName(o.mark, o.id, top.device+"."+strconv.Itoa(n)))
	}
	return names
}

// copyOf makes a disk from a layer. A full copy is made by the source's node, whose pool knows the layer.
func (t *Target) copyOf(o *origin, base layer, size int64) blueprintDisk {
	if o.linked {
		return blueprintDisk{base.device, formatQCOW2, func(ctx context.Context, b *blueprint, name string) error {
			v := newVolume(name, formatQCOW2, size).over(b.pool.file(base.volume), base.format)
			return b.node.createVolume(ctx, b.pool, v)
		}}
	}
	format := t.settings.diskFormat
	return blueprintDisk{base.device, format, func(ctx context.Context, _ *blueprint, name string) error {
		return o.home.copyVolume(ctx, o.pool, newVolume(name, format, size), base.volume)
	}}
}

// sees looks at a volume that QEMU or another node may have made, which the pool does not know before it is read anew.
func (n *node) sees(ctx context.Context, p pool, name string) (stored, error) {
	if v, err := n.readVolume(ctx, p, name); !isGone(err) {
		return v, err
	}
	if _, err := n.listVolumes(ctx, p); err != nil {
		return stored{}, err
	}
	return n.readVolume(ctx, p, name)
}
