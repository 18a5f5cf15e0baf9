package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// confirmAfter is between the two surveys of a VM that seems to have stopped: during a migration it is for a moment on neither host.
const confirmAfter = time.Second

// mayAnswer returns why an agent cannot answer; a target.StoppedError where dialling again is pointless. A host that does not
// answer is not a reason: its VMs may still run. After a failed attempt the state of a running VM is checked too: it may be paused.
func (a *agents) mayAnswer(ctx context.Context, vm target.VM, failed bool) error {
	noticed := time.Now()
	for confirmed := false; ; confirmed = true {
		err := a.check(ctx, vm, failed)
		var stopped *target.StoppedError
		switch {
		case !errors.As(err, &stopped):
			return err
		case confirmed:
			a.listener.Date(stopped, vm.ID, noticed)
			return err
		}
		if err := wait.For(ctx, confirmAfter); err != nil {
			return err
		}
	}
}

func (a *agents) check(ctx context.Context, vm target.VM, failed bool) error {
	s, err := a.surveys.get(ctx, a.cluster.survey)
	if err != nil {
		return err
	}
	one := s.vms[vm.ID]
	if one != nil {
		p := one.home()
		a.listener.Placed(vm.ID, p.node.ID, p.Name)
	}
	switch {
	case one == nil && len(s.down) == 0:
		return &target.StoppedError{VM: vm.Name, Reason: "its domain is gone from all hosts"}
	case one == nil || one.power() == target.PowerOn && !failed:
		return nil
	}
	p := one.home()
	if !p.Active() && len(s.down) > 0 {
		return errors.New("it has no power here, and " + s.incomplete().Error())
	}
	state, err := p.node.domains.State(ctx, one.id)
	if err != nil {
		return err
	}
	if reason := stopReason(state); reason != "" {
		return &target.StoppedError{VM: vm.Name, Reason: reason}
	}
	if !p.Active() {
		return errors.New("it has no power")
	}
	return nil
}

// stopReasons are the states of a domain, as virsh domstate --reason prints them, in which its guest has ended or met a fault. A
// domain that a user paused is not among them: it will be resumed.
var stopReasons = map[string]string{
	"shut off (crashed)":   "its kernel panicked, or its emulator ended",
	"shut off (shutdown)":  "its system shut down, by itself or on request",
	"shut off (destroyed)": "a user or its host cut its power",
	"shut off (failed)":    "it could not be started",
	"shut off (daemon)":    "libvirt of its host ended it",
	"shut off (unknown)":   "its host does not know the reason",
	"shut off (saved)":     "a user saved it to disk",
	"crashed (panicked)":   "its kernel panicked",
	"paused (crashed)":     "its kernel panicked",
	"paused (I/O error)":   "its storage failed or is full, and it is paused",
}

// stopReason explains a state of a domain; "" where the guest may continue by itself, as after a migration.
func stopReason(state string) string {
	if why, ok := stopReasons[state]; ok {
		return fmt.Sprintf("libvirt calls it %q: %s", state, why)
	}
	return ""
}
