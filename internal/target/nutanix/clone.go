package nutanix

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/target"
)

// CloneVM makes powered-off copies of a VM. All clones of AHV share unmodified blocks with their source, linked or not.
func (m *builder) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, _ bool,
) ([]target.VM, error) {
	_, list, err := m.cluster.find(ctx, tag, []target.VM{source}, false)
	if err == nil {
		err = fitsSource(list[0], specs)
	}
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Template = list[0].record.Template
	}
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	defer m.cluster.addresses.Release(names(plans)...)
	vms, err := m.buildAll(ctx, tag, plans, func(ctx context.Context, b *blueprint) (string, error) {
		return m.clone(ctx, list[0].ExtID, b)
	})
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	return vms, nil
}

// clone makes one copy and gives it its own record. Until then its name tells whose it is.
func (m *builder) clone(ctx context.Context, source string, b *blueprint) (string, error) {
	id, err := m.cluster.ahv.Clone(ctx, source, b.spec, b.request)
	if id == "" {
		found, looked := m.cluster.ahv.VMs(ctx, b.spec.Name)
		if looked != nil || len(found) == 0 {
			return "", err
		}
		id = found[0].ExtID
	}
	return id, m.cluster.ahv.Describe(ctx, id, b.spec.Description, b.spec.Categories)
}

func fitsSource(from *info, specs []target.VMSpec) error {
	for _, spec := range specs {
		if !slices.Equal(spec.DiskBytes, from.record.DiskBytes) {
			return fmt.Errorf("clone %q has other disks than its source", spec.Name)
		}
	}
	return nil
}
