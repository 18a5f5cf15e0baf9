package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// MigrateVMs moves VMs to another node: those that run without an interruption, the others by moving their definition.
// Both nodes must see the storage.
func (t *Target) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	list, err := t.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	to, err := t.node(nodeID)
	if err != nil {
		return fmt.Errorf("migrate VMs: %w", err)
	}
	return onEach(ctx, "migrate", list, func(i int) error {
		defer t.lock(list[i].id)()
		return t.migrate(ctx, tag, list[i], to)
	})
}

func (t *Target) migrate(ctx context.Context, tag target.Tag, one *seen, to *node) error {
	if from := one.main().node; from != to {
		if err := t.sharedWith(ctx, one, to); err != nil {
			return err
		}
		settled := func(ctx context.Context) bool { return t.arrived(ctx, tag, one, to) }
		err := patiently(ctx, func(ctx context.Context) error { return from.send(ctx, one, to) }, settled)
		if err != nil {
			return err
		}
	}
	if err := tidyPlaces(ctx, one, to); err != nil {
		return err
	}
	return t.memory.keep(remembered{Mark: tag.Mark(), Node: to.id, Record: one.record})
}

// send moves a VM once.
func (n *node) send(ctx context.Context, one *seen, to *node) error {
	destination, err := to.reach(ctx, queryLimit)
	if err != nil {
		return fmt.Errorf("node %q: %w", to.id, err)
	}
	args := []string{"migrate", "--domain=" + one.id, "--desturi=" + destination, "--persistent", "--undefinesource"}
	if one.power() == target.PowerOn {
		// libvirt knows some kinds of shared storage and takes all others for private; we looked for ourselves. Our
		// disks are not cached by hosts, which is what makes it safe.
		args = append(args, "--live", "--unsafe", "--abort-on-error")
		if a := to.config.Address; a != "" && net.ParseIP(a) != nil {
			args = append(args, "--migrateuri=tcp://"+hostOf(a))
		}
	} else {
		args = append(args, "--offline")
	}
	_, err = n.run(ctx, call{args: args, limit: migrateLimit})
	return err
}

func hostOf(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}

// sharedWith makes sure that the other node sees the volumes of a VM. Nobody else can have made volumes of these names.
func (t *Target) sharedWith(ctx context.Context, one *seen, to *node) error {
	p, err := to.readPool(ctx, to.pool)
	if err != nil {
		return err
	}
	have, err := to.listVolumes(ctx, p)
	if err != nil {
		return err
	}
	for _, l := range one.main().layers() {
		if !slices.Contains(have, l.volume) {
			return &diag.Error{
				Code: "libvirt-not-shared", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("node %q does not see the disks of the VM in its pool %q", to.id, to.pool),
				Hint:    "VMs move between nodes whose pools are on one storage",
			}
		}
	}
	if t.settings.cache != "none" && t.settings.cache != "directsync" && one.power() == target.PowerOn {
		return &diag.Error{
			Code: "libvirt-cached", Exit: diag.ExitRefused,
			Message: fmt.Sprintf("hosts cache the disks (cache: %s), and the data of a VM that moves could be lost", t.settings.cache),
			Hint:    "set \"cache: none\" in the options of the target file",
		}
	}
	return nil
}

// arrived tells whether a VM lives on the node although its migration seemed to fail.
func (t *Target) arrived(ctx context.Context, tag target.Tag, one *seen, to *node) bool {
	s, err := t.survey(ctx)
	if err != nil {
		return false
	}
	now, err := s.find(tag, target.VM{ID: one.id, Name: one.record.VM.Name})
	return err == nil && now.main().node == to && (now.power() == target.PowerOn || one.power() == target.PowerOff)
}

// tidyPlaces removes what a migration that was cut off left of a VM where it was seen before: its definition there, without
// power. No migration leaves anything anywhere else.
func tidyPlaces(ctx context.Context, one *seen, home *node) error {
	var errs []error
	for _, p := range one.at {
		if p.node == home {
			continue
		}
		now, err := p.node.sight(ctx, one.id)
		if err != nil || now.active() {
			continue // it is not there, or cannot be asked: the next survey shows it
		}
		errs = append(errs, p.node.undefine(ctx, one.id))
	}
	return errors.Join(errs...)
}
