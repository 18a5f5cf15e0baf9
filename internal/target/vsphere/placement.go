package vsphere

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// SetHA sets whether HA restarts the VMs. Enabled: as the cluster does.
func (o *operations) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := o.site.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set restart of VMs: %w", err)
	}
	return o.site.drs.SetHA(ctx, refs(list), enabled)
}

// SetBalancing sets whether DRS may move the VMs. Enabled: as the cluster does.
func (o *operations) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := o.site.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set balancing of VMs: %w", err)
	}
	return o.site.drs.SetBalancing(ctx, refs(list), enabled)
}

// refs are the objects of VMs that exist.
func refs(list []*vmInfo) []types.ManagedObjectReference {
	var all []types.ManagedObjectReference
	for _, one := range list {
		if one != nil {
			all = append(all, one.ref)
		}
	}
	return all
}
