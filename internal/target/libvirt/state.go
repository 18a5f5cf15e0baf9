package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// confirmAfter is between the two looks at a VM that seems to have stopped: one that moves is for a moment on neither host.
const confirmAfter = time.Second

// mayAnswer tells why an agent cannot answer; a target.StoppedError where nobody need call it again. A host that does not
// answer is no reason: its VMs may still run. Callers that have called in vain say so, and then it is also asked whether the
// VM stands still.
func (t *Target) mayAnswer(ctx context.Context, vm target.VM, inVain bool) error {
	noticed := time.Now()
	for confirmed := false; ; confirmed = true {
		err := t.standing(ctx, vm, inVain)
		var stopped *target.StoppedError
		switch {
		case !errors.As(err, &stopped):
			return err
		case confirmed:
			t.listener.date(stopped, vm.ID, noticed)
			return err
		}
		select {
		case <-time.After(confirmAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *Target) standing(ctx context.Context, vm target.VM, inVain bool) error {
	s, err := t.looks.survey(ctx, t.survey)
	if err != nil {
		return err
	}
	one := s.vms[vm.ID]
	if one != nil {
		p := one.main()
		t.listener.placed(vm.ID, domainAt{p.node.id, p.Name})
	}
	switch {
	case one == nil && len(s.down) == 0:
		return &target.StoppedError{VM: vm.Name, Reason: "no host has it any more"}
	case one == nil || one.power() == target.PowerOn && !inVain:
		return nil
	}
	p := one.main()
	if !p.active() && len(s.down) > 0 {
		return errors.New("it has no power here, and nodes do not answer: " + s.unsure().Error())
	}
	text, err := p.node.query(ctx, "domstate", "--reason", "--domain="+one.id)
	if err != nil {
		return err
	}
	if reason := stopReason(strings.TrimSpace(string(text))); reason != "" {
		return &target.StoppedError{VM: vm.Name, Reason: reason}
	}
	if !p.active() {
		return errors.New("it has no power")
	}
	return nil
}

// stopReasons are the states of a domain, as virsh domstate --reason prints them, in which its guest has ended or met a fault. One
// that somebody paused is not among them: whoever did that means to let it go on.
var stopReasons = map[string]string{
	"shut off (crashed)":   "its system panicked, or its emulator ended",
	"shut off (shutdown)":  "its system switched itself off, or was asked to",
	"shut off (destroyed)": "somebody cut its power, or its host did",
	"shut off (failed)":    "it could not be started",
	"shut off (daemon)":    "its host's libvirt ended it",
	"shut off (unknown)":   "its host does not know why",
	"shut off (saved)":     "somebody saved it to disk",
	"crashed (panicked)":   "its system panicked",
	"paused (crashed)":     "its system panicked",
	"paused (I/O error)":   "its storage failed or is full; it stands still where it was",
}

// stopReason explains a state of a domain; "" where the guest may go on by itself, as after a migration.
func stopReason(state string) string {
	if why, ok := stopReasons[state]; ok {
		return fmt.Sprintf("libvirt calls it %q: %s", state, why)
	}
	return ""
}
