package vsphere

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
)

// CloneVM creates powered-off copies of a VM, running or not, at one instant. Linked clones share unmodified blocks with a
// snapshot of the source, which vCenter keeps for them when the source is deleted. A data disk of a full clone may be
// larger than its source, never smaller. DRS and HA treat the copies as they do the source.
func (m *builder) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	vms, err := m.cloneVM(ctx, tag, source, specs, linked)
	if err != nil {
		return nil, m.site.vc.Explain(fmt.Sprintf("clone vm %q", source.Name), err)
	}
	return vms, nil
}

func (m *builder) cloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool,
) ([]target.VM, error) {
	list, err := m.site.find(ctx, tag, []target.VM{source}, false)
	if err != nil {
		return nil, err
	}
	from := list[0]
	defer m.locks.Lock(from.id)()
	if err := fitsSource(from, specs); err != nil {
		return nil, err
	}
	specs = append([]target.VMSpec(nil), specs...)
	for i := range specs {
		specs[i].Template = from.owner.Record.Template
	}
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	o := &origin{place: place{from.ref, source.Name}, vm: true, disks: append(from.owner.Record.Slots[:0:0], from.owner.Record.Slots...)}
	if o.devices, err = m.site.vms().Devices(ctx, o.ref); err == nil && linked {
		o.snapshot, err = m.site.vms().Snapshot(ctx, from.ref, "bragg linked clones")
	}
	if err != nil {
		m.addresses.Release(ids(plans)...)
		return nil, err
	}
	return m.buildAll(ctx, tag, plans, func(*blueprint) (*origin, error) { return o, nil })
}

func fitsSource(from *vmInfo, specs []target.VMSpec) error {
	disks := from.owner.Record.VM.Disks
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
