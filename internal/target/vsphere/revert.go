package vsphere

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// RevertVMs returns VMs without power to the latest snapshot of that name. vCenter returns their settings with their disks:
// the identity of a guest may be an older one, and is made again before the next start.
func (o *operations) RevertVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	return o.each(ctx, "revert", selection{tag, vms, false}, func(one *vmInfo) error {
		if one.state != types.VirtualMachinePowerStatePoweredOff {
			return errors.New("it is on: a snapshot holds its disks only")
		}
		o.guests.forget(one.id)
		return o.site.vms().Revert(ctx, one.ref, name)
	})
}
