package kube

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// operations are those on VMs that exist.
type operations struct {
	cluster *cluster
	run     runner
	agents  *agents
	locks   *target.KeyLocks // by VM
}

// PowerOnVMs starts VMs; running ones are skipped.
func (o *operations) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("power on VMs: %w", err)
	}
	return onEach(ctx, "power on", list, func(r object.Record) error {
		defer o.locks.Lock(r.VM.ID)()
		return o.run.start(ctx, r, object.OwnerOf(tag))
	})
}

// PowerOffVMs cuts the power of VMs; those that are off or gone are skipped.
func (o *operations) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	list, err := o.cluster.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("power off VMs: %w", err)
	}
	return onEach(ctx, "power off", list, func(r object.Record) error {
		defer o.locks.Lock(r.VM.ID)()
		defer o.agents.link.HangUp(r.VM.ID)
		return o.run.stop(ctx, r)
	})
}
