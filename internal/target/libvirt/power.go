package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// PowerOnVMs starts VMs; those that run are left alone.
func (t *Target) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	looked := time.Now()
	list, err := t.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("power on VMs: %w", err)
	}
	return onEach(ctx, "power on", list, func(i int) error {
		one := list[i]
		defer t.lock(one.id)()
		p := one.main()
		if p.active() {
			return nil
		}
		target.Powerless(ctx, one.record.VM.Name, looked)
		if err := t.renew(ctx, one); err != nil {
			return err
		}
		return p.node.start(ctx, one.id)
	})
}

func (n *node) start(ctx context.Context, id string) error {
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, nil, "start", "--domain="+id)
		return err
	}, nil)
	if isStill(err) {
		return nil
	}
	return err
}

// PowerOffVMs cuts the power of VMs; what is off or gone is left alone.
func (t *Target) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	list, err := t.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("power off VMs: %w", err)
	}
	return onEach(ctx, "power off", list, func(i int) error {
		defer t.lock(list[i].id)()
		defer t.hangUp(list[i].id)
		return list[i].off(ctx)
	})
}

// How long a guest may take to end when it is asked to, and how often it is looked at. Some press the button twice.
const (
	shutdownWithin = 2 * time.Minute
	shutdownLook   = 500 * time.Millisecond
	shutdownAgain  = 20 * time.Second
)

// ShutdownVMs asks guests by ACPI to end and waits until they have. One that does not keeps its power, which is an error.
func (t *Target) ShutdownVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	list, err := t.find(ctx, tag, vms, true)
	if err != nil {
		return fmt.Errorf("shut down VMs: %w", err)
	}
	return onEach(ctx, "shut down", list, func(i int) error {
		defer t.lock(list[i].id)()
		p := list[i].main()
		if !p.active() {
			return nil
		}
		if err := p.node.shutdown(ctx, list[i].id); err != nil {
			return err
		}
		t.hangUp(list[i].id)
		return nil
	})
}

func (n *node) shutdown(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, shutdownWithin, errors.New("the guest does not end"))
	defer cancel()
	pressed := time.Time{}
	for {
		if time.Since(pressed) > shutdownAgain {
			_, err := n.change(ctx, nil, "shutdown", "--domain="+id, "--mode=acpi")
			switch {
			case isGone(err) || isStill(err):
				return nil
			case err != nil && !isLost(err) && !isBusy(err):
				return err
			}
			pressed = time.Now()
		}
		select {
		case <-time.After(shutdownLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		one, err := n.sight(ctx, id)
		if isGone(err) || err == nil && !one.active() {
			return nil
		}
	}
}

// find surveys the nodes and returns the VMs as they are now.
func (t *Target) find(ctx context.Context, tag target.Tag, vms []target.VM, orGone bool) ([]*seen, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	s, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	return s.resolve(tag, vms, orGone)
}

// SetHA makes VMs start again with their node, or not.
func (t *Target) SetHA(ctx context.Context, tag target.Tag, vms []target.VM, enabled bool) error {
	list, err := t.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("set restart of VMs: %w", err)
	}
	return onEach(ctx, "set restart of", list, func(i int) error {
		args := []string{"autostart", "--domain=" + list[i].id}
		if !enabled {
			args = append(args, "--disable")
		}
		return patiently(ctx, func(ctx context.Context) error {
			_, err := list[i].main().node.change(ctx, nil, args...)
			return err
		}, nil)
	})
}

// SetBalancing has nothing to switch: libvirt moves no VM by itself.
func (t *Target) SetBalancing(ctx context.Context, tag target.Tag, vms []target.VM, _ bool) error {
	_, err := t.find(ctx, tag, vms, false)
	return err
}
