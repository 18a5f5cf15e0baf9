package lease

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

// The libvirt of the machine that this process is on.

// ownSockets are where libvirt's daemons listen for those who administer the machine, the modular one and the old one.
var ownSockets = []string{"/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock"}

const (
	ownURI     = "qemu:///system"
	ownGroup   = "libvirt"
	ownCallMax = 20 * time.Second
)

// OwnLibvirt returns the libvirt of this machine; ok is false without one, or if this user may not use it without a password
// prompt.
func OwnLibvirt() (s Secrets, ok bool) {
	if _, err := exec.LookPath("virsh"); err != nil || !mayUseLibvirt() {
		return s, false
	}
	there := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().Type() == os.ModeSocket
	}
	if !slices.ContainsFunc(ownSockets, there) {
		return s, false
	}
	return Secrets{
		Query:  func(ctx context.Context, args ...string) ([]byte, error) { return ownVirsh(ctx, nil, args...) },
		Change: ownVirsh,
	}, true
}

func mayUseLibvirt() bool {
	if os.Geteuid() == 0 {
		return true
	}
	g, err := user.LookupGroup(ownGroup)
	if err != nil {
		return false
	}
	groups, err := os.Getgroups()
	id, failed := strconv.Atoi(g.Gid)
	return err == nil && failed == nil && slices.Contains(groups, id)
}

func ownVirsh(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, ownCallMax)
	defer cancel()
	c := exec.CommandContext(bounded, "virsh", append([]string{"--quiet", "--connect=" + ownURI}, args...)...)
	c.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=/"}
	c.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it finds no terminal to ask for a password
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("virsh %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// Machine returns libvirt's UUID of its host.
func (s Secrets) Machine(ctx context.Context) (string, error) {
	text, err := s.Query(ctx, "capabilities")
	if err != nil {
		return "", err
	}
	var c struct {
		UUID string `xml:"host>uuid"`
	}
	if err := xml.Unmarshal(text, &c); err != nil {
		return "", fmt.Errorf("read capabilities: %w", err)
	}
	if c.UUID = strings.TrimSpace(c.UUID); c.UUID == "" {
		return "", errors.New("read capabilities: the host has no UUID")
	}
	return c.UUID, nil
}

// Mark records in the libvirt of this machine that a holder shares it, so that controllers that use libvirt do not cut
// its power, and renews the record until the returned function is called. Without access to libvirt it has no effect.
// It removes the records of holders that were killed.
func Mark(ctx context.Context, h Holder) (unmark func()) {
	s, ok := OwnLibvirt()
	if !ok {
		return func() {}
	}
	sweeping, cancel := context.WithTimeout(ctx, ownCallMax)
	s.sweep(sweeping)
	cancel()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	mark := func() {
		h.Renewed = time.Now().UTC().Truncate(time.Second)
		_ = s.define(ctx, secretPart+h.ID, h) // what does not work now may work the next time
	}
	mark()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait.Every(ctx, RenewPeriod, mark)
	}()
	return func() {
		stop()
		<-ended
		_ = s.Drop(context.WithoutCancel(ctx), h.ID)
	}
}
