package nutanix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/wait"
)

// operations are those on VMs that exist. Each works on a survey of its own.
type operations struct {
	cluster *cluster
	agents  *agents
	seeds   *seeds
}

// gone takes an object that does not exist for done.
func gone(err error) error {
	if prism.IsGone(err) {
		return nil
	}
	return err
}

// PowerOnVMs starts VMs on their nodes; running ones are skipped.
func (o *operations) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	surveyed := time.Now()
	_, list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("power on VMs: %w", err)
	}
	nodes, err := o.cluster.fresh(ctx)
	if err != nil {
		return fmt.Errorf("power on VMs: %w", err)
	}
	return onEach(ctx, "power on", list, func(one *info) error {
		if one.Power == ahv.On {
			return nil
		}
		if !one.finished {
			return errors.New("it is a clone that was not finished")
		}
		n, err := of(nodes, one.record.Node)
		if err == nil {
			err = n.up()
		}
		if err != nil {
			return err
		}
		target.Powerless(ctx, one.name(), surveyed)
		if err := o.cluster.ahv.PowerOn(ctx, one.ExtID); err != nil {
			if policies := o.cluster.concerning(ctx, one.Categories); policies != "" {
				err = fmt.Errorf("start it on host %s%s: %w", n.name, policies, err)
			}
			return err
		}
		return o.settle(ctx, one, n)
	})
}

// settle moves a VM that Prism started on another node than its own.
func (o *operations) settle(ctx context.Context, one *info, n *node) error {
	now, err := o.cluster.ahv.VM(ctx, one.ExtID)
	if err != nil {
		return err
	}
	if host := now.HostID(); host == "" || host == n.host.ExtID {
		return nil
	}
	if err := o.cluster.ahv.Migrate(ctx, one.ExtID, n.host.ExtID); err != nil {
		return fmt.Errorf("prism started it on another node, from where it cannot be moved%s: %w", o.cluster.concerning(ctx, now.Categories), err)
	}
	return nil
}

// PowerOffVMs cuts the power of VMs; those that are off or gone are skipped.
func (o *operations) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	_, list, err := o.cluster.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("power off VMs: %w", err)
	}
	return onEach(ctx, "power off", list, func(one *info) error {
		defer o.agents.link.HangUp(one.ExtID)
		return gone(o.cluster.ahv.PowerOff(ctx, one.ExtID))
	})
}

// MigrateVMs moves VMs to another node: running ones by live migration, the others start there.
func (o *operations) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	_, list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	to, err := o.cluster.node(ctx, nodeID)
	if err == nil {
		err = to.up()
	}
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	return onEach(ctx, "migrate", list, func(one *info) error {
		if one.Power == ahv.On && one.HostID() != to.host.ExtID {
			if err := o.cluster.ahv.Migrate(ctx, one.ExtID, to.host.ExtID); err != nil {
				return fmt.Errorf("move it to host %s%s: %w", to.name, o.cluster.concerning(ctx, one.Categories), err)
			}
		}
		if !one.finished || one.record.Node == to.id {
			return nil
		}
		one.record.Node = to.id
		text, err := one.record.describe()
		if err != nil {
			return err
		}
		return o.cluster.ahv.Describe(ctx, one.ExtID, text, nil)
	})
}

// pointName is the name of recovery points of a VM: the mark, digests of the name of the VM and of the snapshot, and the latter for
// people.
func pointName(one *info, mark, name string) string {
	sum := sha256.Sum256([]byte(one.name() + "\x00" + name))
	return runPrefix(mark) + hex.EncodeToString(sum[:])[:markDigits] + "-" + readable(name)
}

// SnapshotVMs takes crash-consistent recovery points of all disks of each VM at one instant, without the guest.
func (o *operations) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	_, list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("snapshot VMs: %w", err)
	}
	return onEach(ctx, "snapshot", list, func(one *info) error {
		point := pointName(one, tag.Mark(), name)
		before, err := o.cluster.points().List(ctx, point)
		if err != nil {
			return err
		}
		inner, done := wait.Outlasting(ctx, settleMax) // the removal of the VM removes its recovery points too: those that are there
		defer done()
		err = o.cluster.points().Snapshot(inner, one.ExtID, point, uuid.New())
		if err == nil || !errors.Is(err, prism.ErrTaskLost) {
			return err
		}
		if after, looked := o.cluster.points().List(ctx, point); looked == nil && len(after) > len(before) {
			return nil
		}
		return err
	})
}

// RevertVMs returns the disks of VMs, which are off, to their latest recovery point of that name.
func (o *operations) RevertVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	_, list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("revert VMs: %w", err)
	}
	return onEach(ctx, "revert", list, func(one *info) error {
		if one.Power != ahv.Off {
			return errors.New("it is on")
		}
		points, err := o.cluster.points().List(ctx, pointName(one, tag.Mark(), name))
		if err != nil {
			return err
		}
		var latest ahv.RecoveryPoint
		for _, p := range points {
			if p.Part(one.ExtID) != "" && (latest.ExtID == "" || !p.Created.Before(latest.Created)) {
				latest = p
			}
		}
		if latest.ExtID == "" {
			return fmt.Errorf("it has no snapshot %q", name)
		}
		return o.cluster.points().Revert(ctx, one.ExtID, latest.Part(one.ExtID))
	})
}

// SetHA sets whether the cluster restarts VMs on other nodes after a failure.
func (o *operations) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	_, list, err := o.cluster.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set restart of VMs: %w", err)
	}
	return onEach(ctx, "set restart of", list, func(one *info) error { return o.cluster.ahv.SetRestart(ctx, one.ExtID, enabled) })
}

// SetBalancing changes nothing: AHV balances the VMs of a cluster, or none. See Inventory.
func (o *operations) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, _ bool) error {
	_, _, err := o.cluster.find(ctx, tag, vms, false)
	return err
}

// EnterMaintenance evacuates a node, if the target file allows it.
func (o *operations) EnterMaintenance(ctx context.Context, nodeID string) error {
	n, err := o.maintainable(ctx, nodeID)
	if err != nil || n.host.InMaintenance() {
		return err
	}
	return o.cluster.ahv.EnterMaintenance(ctx, n.host.ExtID)
}

// ExitMaintenance lets VMs run on a node again. One that is about to enter maintenance, for a call that was cancelled or a program that died, does so
// first: Prism shows it as usable until then.
func (o *operations) ExitMaintenance(ctx context.Context, nodeID string) error {
	n, err := o.maintainable(ctx, nodeID)
	if err == nil {
		err = o.cluster.entered(ctx, n.host.ExtID)
	}
	if err == nil {
		n, err = o.cluster.node(ctx, nodeID)
	}
	if err != nil || n.host.Trouble() == "" {
		return err
	}
	return o.cluster.ahv.ExitMaintenance(ctx, n.host.ExtID)
}

func (o *operations) maintainable(ctx context.Context, nodeID string) (*node, error) {
	if !o.cluster.config.Allow.Maintenance {
		return nil, target.MaintenanceForbidden(nodeID)
	}
	return o.cluster.node(ctx, nodeID)
}

// forbidden is the refusal of an operation that the target file does not allow.
func forbidden(code, message, key string) error {
	return &diag.Error{
		Code: code, Exit: diag.ExitRefused, Message: message, Hint: fmt.Sprintf("allow it with \"allow: {%s: true}\" in the target file", key),
	}
}
