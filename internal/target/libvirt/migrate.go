package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// MigrateVMs moves VMs to another node: running ones by live migration, the others by moving their definition. Both
// nodes must share the storage.
func (o *operations) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	to, err := o.cluster.node(ctx, nodeID)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	return o.each(ctx, "migrate", selection{tag, vms, false}, func(one *vmInfo) error { return o.migrate(ctx, tag, one, to) })
}

func (o *operations) migrate(ctx context.Context, tag target.Tag, one *vmInfo, to *node) error {
	if from := one.home().node; from != to {
		if err := o.sharedWith(ctx, one, to); err != nil {
			return err
		}
		settled := func(ctx context.Context) bool { return o.arrived(ctx, tag, one, to) }
		err := virsh.Retry(ctx, func(ctx context.Context) error { return from.send(ctx, one, to) }, settled)
		if err != nil {
			return err
		}
	}
	if err := tidyPlaces(ctx, one, to); err != nil {
		return err
	}
	return o.memory.keep(remembered{Mark: tag.Mark(), Node: to.ID, Record: one.record})
}

// send migrates a VM, in one attempt.
func (n *node) send(ctx context.Context, one *vmInfo, to *node) error {
	destination, err := to.Reach(ctx, virsh.QueryLimit)
	if err != nil {
		return err
	}
	args := []string{"migrate", "--domain=" + one.id, "--desturi=" + destination, "--persistent", "--undefinesource"}
	if one.power() == target.PowerOn {
		// libvirt recognises some kinds of shared storage and takes all others for private. It is safe because both nodes see
		// the volumes, and hosts do not cache our disks: see sharedWith.
		args = append(args, "--live", "--unsafe", "--abort-on-error")
		if a := to.config.Address; a != "" && net.ParseIP(a) != nil {
			args = append(args, "--migrateuri=tcp://"+hostOf(a))
		}
	} else {
		args = append(args, "--offline")
	}
	_, err = n.Run(ctx, virsh.Call{Args: args, Limit: virsh.MigrateLimit})
	return err
}

func hostOf(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}

// sharedWith makes sure that the other node sees the volumes of a VM, whose names are unique.
func (o *operations) sharedWith(ctx context.Context, one *vmInfo, to *node) error {
	p, err := to.store.Pool(ctx)
	if err != nil {
		return err
	}
	have, err := p.Volumes(ctx)
	if err != nil {
		return err
	}
	for _, l := range one.home().layers() {
		if !slices.Contains(have, l.volume) {
			return &diag.Error{
				Code: "libvirt-not-shared", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("node %q does not see the disks of the VM in its pool %q", to.ID, o.cluster.pool),
				Hint:    "VMs migrate between nodes whose pools are on one storage",
			}
		}
	}
	if o.cache != "none" && o.cache != "directsync" && one.power() == target.PowerOn {
		return &diag.Error{
			Code: "libvirt-cached", Exit: diag.ExitRefused,
			Message: fmt.Sprintf("hosts cache the disks (cache: %s), and a migration could lose data", o.cache),
			Hint:    "set \"cache: none\" in the options of the target file",
		}
	}
	return nil
}

// arrived reports whether a VM is on the node although its migration seemed to fail.
func (o *operations) arrived(ctx context.Context, tag target.Tag, one *vmInfo, to *node) bool {
	s, err := o.cluster.survey(ctx)
	if err != nil {
		return false
	}
	now, err := s.one(tag, target.VM{ID: one.id, Name: one.record.VM.Name})
	return err == nil && now.home().node == to && (now.power() == target.PowerOn || one.power() == target.PowerOff)
}

// tidyPlaces removes what an interrupted migration left of a VM where it was before: its definition, without power. No migration
// leaves anything elsewhere.
func tidyPlaces(ctx context.Context, one *vmInfo, home *node) error {
	var errs []error
	for _, p := range one.at {
		if p.node == home {
			continue
		}
		now, err := p.node.domains.Get(ctx, one.id)
		if err != nil || now.Active() {
			continue // it is gone, or its node does not answer: the next survey shows it
		}
		errs = append(errs, p.node.domains.Undefine(ctx, one.id))
	}
	return errors.Join(errs...)
}
