package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/lab/cable"
	"github.com/braggdev/bragg/internal/lab/chassis"
)

// host is a host as its BMC sees it: power, and a first process while it is on.
type host struct {
	Host
	lab     *Lab
	nursery *nursery

	switching sync.Mutex // one reset at a time

	mu    sync.Mutex
	power chassis.Power
	life  *life // nil while it is off
	fault string
}

// life is a host from power on to power off.
type life struct {
	init   *child
	booted chan struct{} // closed when its servers answer, or never will
	up     bool
	over   chan struct{} // closed when nothing of it is left
}

func (h *host) Power() chassis.Power {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.power
}

// status is what a client gets to see.
func (h *host) status() HostStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := HostStatus{Name: h.Name, Power: h.power, Fault: h.fault}
	if h.life != nil {
		s.Up, s.Process = h.life.up, h.life.init.id
	}
	return s
}

func (h *host) Reset(_ context.Context, kind chassis.Reset) error {
	if err := chassis.CheckReset(kind); err != nil {
		return err
	}
	h.switching.Lock()
	defer h.switching.Unlock()
	if kind == chassis.ResetPushPowerButton {
		if kind = chassis.ResetOn; h.Power() != chassis.PowerOff {
			kind = chassis.ResetGracefulShutdown
		}
	}
	switch kind {
	case chassis.ResetForceOff:
		return h.powerOff()
	case chassis.ResetForceRestart, chassis.ResetPowerCycle:
		if err := h.powerOff(); err != nil {
			return err
		}
		return h.boot()
	case chassis.ResetGracefulShutdown:
		h.askToStop()
		return nil
	}
	if h.Power() != chassis.PowerOff {
		return nil
	}
	return h.boot()
}

// powerOff disconnects the link and kills the first process of the host; the kernel then kills all others. It returns when
// all of them are gone.
func (h *host) powerOff() error {
	h.mu.Lock()
	running := h.life
	h.mu.Unlock()
	if running == nil {
		return nil
	}
	err := cable.Unplug(h.Name)
	h.nursery.signal(running.init, unix.SIGKILL)
	<-running.over
	h.mu.Lock()
	defer h.mu.Unlock()
	h.power, h.life, h.fault = chassis.PowerOff, nil, ""
	return err
}

func (h *host) askToStop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life != nil && h.power == chassis.PowerOn {
		h.power = chassis.PowerPoweringOff
		h.nursery.signal(h.life.init, unix.SIGTERM)
	}
}

// boot switches the power on. What a host has written below /run is gone then, and it has another boot id, as everywhere.
func (h *host) boot() error {
	run := filepath.Join(h.Dir, "run")
	err := errors.Join(os.RemoveAll(run), os.Mkdir(run, 0o700), os.WriteFile(filepath.Join(h.Dir, "boot-id"), []byte(uuid.NewString()+"\n"), 0o600))
	if err != nil {
		return fmt.Errorf("switch host %q on: %w", h.Name, err)
	}
	log, err := os.OpenFile(filepath.Join(h.Dir, "host.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("switch host %q on: %w", h.Name, err)
	}
	defer log.Close()
	orders, order, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("switch host %q on: %w", h.Name, err)
	}
	defer order.Close()
	progress, tell, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("switch host %q on: %w", h.Name, err), orders.Close())
	}
	init, err := h.nursery.start([]string{"/proc/self/exe", Verb, roleHost, h.lab.Dir, h.Name}, []*os.File{orders, log, log, tell},
		&unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC})
	err = errors.Join(err, orders.Close(), tell.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("switch host %q on: %w", h.Name, err), progress.Close())
	}
	born := &life{init: init, booted: make(chan struct{}), over: make(chan struct{})}
	h.mu.Lock()
	h.power, h.life, h.fault = chassis.PowerOn, born, ""
	h.mu.Unlock()
	go h.watch(born, progress)
	if err := h.lab.bridge(switchName, 0).Plug(h.Name, uplinkName, init.id); err != nil {
		return errors.Join(err, h.powerOff())
	}
	if _, err := order.WriteString("go\n"); err != nil {
		return errors.Join(fmt.Errorf("switch host %q on: %w", h.Name, err), h.powerOff())
	}
	return nil
}

// watch follows one life. A host whose operating system stopped in order is off; one that crashed keeps its power.
func (h *host) watch(l *life, progress *os.File) {
	line, err := bufio.NewReader(progress).ReadString('\n')
	_ = progress.Close() // it was only read
	h.mu.Lock()
	l.up = err == nil && strings.TrimSpace(line) == "up"
	h.mu.Unlock()
	close(l.booted)
	<-l.init.gone
	h.mu.Lock()
	defer h.mu.Unlock()
	l.up = false
	if err := l.init.outcome(); err == nil {
		if err := cable.Unplug(h.Name); err != nil {
			h.fault = err.Error()
		}
		h.power, h.life = chassis.PowerOff, nil
	} else {
		h.fault = err.Error()
	}
	close(l.over)
}

// waitUp returns when the host's servers answer.
func (h *host) waitUp(ctx context.Context) error {
	h.mu.Lock()
	l := h.life
	h.mu.Unlock()
	if l == nil {
		return fmt.Errorf("host %q is off", h.Name)
	}
	select {
	case <-l.booted:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.up {
		return fmt.Errorf("host %q does not boot; %s says why", h.Name, filepath.Join(h.Dir, "host.log"))
	}
	return nil
}
