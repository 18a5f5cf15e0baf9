package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// Detached makes the VMs of a Target outlive it and this program: the agent of such a VM listens on a socket in the VM's
// folder instead of inheriting a connection, and the next program that opens the folder finds it running. Packages that run
// VMs on another machine (hostvm) use it; there, the machine is a single node, and nothing about it is simulated.
type Detached struct {
	Node target.Node
	// Address is the address of the machine, which all its VMs share.
	Address string
}

// Names in the folder of a detached VM.
const (
	socketName      = "agent.sock"
	certificateName = "agent.crt"
	keyName         = "agent.key"
	authorityName   = "authority.crt"
)

// OpenDetached opens a folder of this machine for detached VMs. It creates nothing.
func OpenDetached(dir string, agentCommand []string, d Detached) (*Target, error) {
	s, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	t := newTarget(s, openCgroups(), []target.Node{d.Node}, agentCommand)
	t.detached = &d
	return t, nil
}

// detachedConfig is the configuration of a detached VM's agent; package agent reads it as its Config. File names are
// relative to the VM's folder, the agent's working directory: the path of a socket is limited to 107 bytes.
type detachedConfig struct {
	VM       string            `json:"vm"`
	VCPUs    int               `json:"vcpus,omitempty"`
	RAMBytes int64             `json:"ram_bytes,omitempty"`
	Devices  []agentDevice     `json:"devices"`
	Listen   string            `json:"listen"`
	TLS      map[string]string `json:"tls"`
}

// PowerOnDetached starts the agent of a VM with its own identity. A running one is skipped.
func (t *Target) PowerOnDetached(ctx context.Context, tag target.Tag, vm target.VM, identity trust.Files) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	m, err := t.find(tag, vm.ID)
	if err != nil {
		return fmt.Errorf("power on vm %q: %w", vm.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.usable(m); err != nil {
		return fmt.Errorf("power on vm %q: %w", vm.Name, err)
	}
	if !m.record.complete() {
		return fmt.Errorf("power on vm %q: its creation was interrupted", vm.Name)
	}
	if len(markedProcesses()[m.processMark()]) > 0 {
		return nil
	}
	if err := t.startDetached(m, identity); err != nil {
		return fmt.Errorf("power on vm %q: %w", vm.Name, err)
	}
	return nil
}

// startDetached starts the process of a VM. The caller holds the lock of m.
func (l *launcher) startDetached(m *machine, identity trust.Files) error {
	for _, f := range []struct {
		name string
		text []byte
	}{{certificateName, identity.Certificate}, {keyName, identity.Key}, {authorityName, identity.Authority}} {
		if err := replaceFile(l.store.path(m.id, f.name), f.text); err != nil {
			return fmt.Errorf("place its identity: %w", err)
		}
	}
	if err := os.Remove(l.store.path(m.id, socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	config := detachedConfig{
		VM: m.record.VM.Name, VCPUs: m.record.Spec.VCPUs, RAMBytes: m.record.Spec.RAMBytes, Devices: m.devices(),
		Listen: "unix:" + socketName,
		TLS:    map[string]string{"certificate": certificateName, "key": keyName, "authority": authorityName},
	}
	argument, err := json.Marshal(config)
	if err != nil {
		return err
	}
	_, err = l.launch(m, string(argument), func(c *exec.Cmd) error {
		c.Args[0] = "bragg-agent" // for people who list the processes of the machine
		// In its own session, the end of the connection to the controller does not reach it.
		c.SysProcAttr.Setsid = true
		if err := c.Start(); err != nil {
			return fmt.Errorf("start its process: %w", err)
		}
		go func() { _ = c.Wait() }() // only to avoid a zombie: it may well outlive this program
		return nil
	})
	return err
}

// confirmPause is the pause between the two checks of a process that seems to have ended.
const confirmPause = time.Second

// DialDetached connects to the socket of a VM's agent; it returns a target.StoppedError if the agent's process has ended.
func (t *Target) DialDetached(ctx context.Context, tag target.Tag, vm target.VM) (net.Conn, error) {
	m, err := t.find(tag, vm.ID)
	if err != nil {
		return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
	}
	// By a descriptor of the folder: the folder's path may be too long for a socket.
	folder, err := os.Open(t.machines.store.path(m.id))
	if err != nil {
		return nil, fmt.Errorf("dial agent of vm %q: %w", vm.Name, err)
	}
	defer folder.Close()
	ended := false
	for tries := 0; ; tries++ {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName))
		if err == nil {
			return conn, nil
		}
		pause := listenPause
		if len(markedProcesses()[m.processMark()]) > 0 {
			ended = false
		} else if ended {
			return nil, &target.StoppedError{VM: vm.Name, Reason: "its process does not run on the host: it was killed, or the host restarted" +
				t.lastWords(m.id)}
		} else {
			ended, pause = true, confirmPause
		}
		if tries == listenTries {
			return nil, fmt.Errorf("dial agent of vm %q: it does not listen: %w%s", vm.Name, err, t.lastWords(m.id))
		}
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// How long an agent may take from its start until it listens: half a minute.
const (
	listenTries = 600
	listenPause = 50 * time.Millisecond
)

// CheckOwned returns nil if all of vms that exist carry the tag.
func (ms *machines) CheckOwned(tag target.Tag, vms []target.VM) error {
	_, err := ms.resolve(tag, vms, true)
	return err
}

// ForeignVMs lists the VMs that run on this machine, in any folder and of any run, except those that carry tag.
func ForeignVMs(tag target.Tag) []string {
	var found []string
	for mark := range markedProcesses() {
		if owner, id, _ := strings.Cut(mark, "/"); owner != tag.Mark() {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return found
}

// RemoveFolder removes the folder for VMs if it has no VMs left, of any owner.
func (ms *machines) RemoveFolder() error {
	err := os.Remove(ms.store.dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// newSuffix is that of a file that is being replaced.
const newSuffix = ".new"

// replaceFile replaces a small file as a whole, readable by this user only.
func replaceFile(path string, text []byte) error {
	if err := os.Remove(path + newSuffix); err != nil && !errors.Is(err, os.ErrNotExist) { // of a program that was killed
		return err
	}
	f, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path + newSuffix)
		return err
	}
	return os.Rename(path+newSuffix, filepath.Clean(path))
}
