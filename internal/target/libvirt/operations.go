package libvirt

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// operations are those on VMs that exist. Each works on a survey of its own.
type operations struct {
	cluster *cluster
	cache   string // of disks, on hosts
	memory  *memory
	locks   *target.KeyLocks // by VM
	agents  *agents
	seeds   *seeds
}

// selection is the VMs of one call. With orGone, those that do not exist are skipped, else they are an error.
type selection struct {
	tag    target.Tag
	vms    []target.VM
	orGone bool
}

// each acts on VMs as they are now, and holds the lock of each meanwhile.
func (o *operations) each(ctx context.Context, action string, s selection, do func(one *vmInfo) error) error {
	list, err := o.cluster.find(ctx, s.tag, s.vms, s.orGone)
	if err != nil {
		return fmt.Errorf("%s VMs: %w", action, err)
	}
	return onEach(ctx, action, list, func(one *vmInfo) error {
		defer o.locks.Lock(one.id)()
		return do(one)
	})
}

// PowerOnVMs starts VMs; running ones are skipped.
func (o *operations) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	surveyed := time.Now()
	return o.each(ctx, "power on", selection{tag, vms, false}, func(one *vmInfo) error {
		p := one.home()
		if p.Active() {
			return nil
		}
		target.Powerless(ctx, one.record.VM.Name, surveyed)
		if err := o.seeds.renew(ctx, one); err != nil {
			return err
		}
		return p.node.domains.Start(ctx, one.id)
	})
}

// PowerOffVMs cuts the power of VMs; those that are off or gone are skipped.
func (o *operations) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	return o.each(ctx, "power off", selection{tag, vms, true}, func(one *vmInfo) error {
		defer o.agents.hangUp(one.id)
		return one.off(ctx)
	})
}

// ShutdownVMs requests an ACPI shutdown of guests and waits for it. A guest that does not shut down stays on, and an
// error is returned.
func (o *operations) ShutdownVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	return o.each(ctx, "shut down", selection{tag, vms, true}, func(one *vmInfo) error {
		p := one.home()
		if !p.Active() {
			return nil
		}
		if err := p.node.domains.Shutdown(ctx, one.id); err != nil {
			return err
		}
		o.agents.hangUp(one.id)
		return nil
	})
}

// SetHA sets whether VMs start with their node.
func (o *operations) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set restart of VMs: %w", err)
	}
	return onEach(ctx, "set restart of", list, func(one *vmInfo) error {
		return one.home().node.domains.SetAutostart(ctx, one.id, enabled)
	})
}

// SetBalancing has no effect: libvirt never moves VMs by itself.
func (o *operations) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, _ bool) error {
	_, err := o.cluster.find(ctx, tag, vms, false)
	return err
}
