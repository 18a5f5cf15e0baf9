package agentvm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Machines are the VMs of one emulator that are on.
type Machines struct {
	// Agent is the path of bragg-agent, and Dir a folder for what the VMs write: logs and identities.
	Agent, Dir string

	mu     sync.Mutex
	on     map[string]*machine
	closed bool
}

// errNoAgent means that the VM boots something else.
var errNoAgent = errors.New("the user data holds no agent")

type machine struct {
	process *exec.Cmd
	dir     string
	ended   chan struct{}
}

// Start starts the agent of a VM. One that runs is skipped. A VM without an agent in its user data is on and answers nothing.
func (m *Machines) Start(v VM) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.New("start vm: the machines are closed")
	}
	if m.on == nil {
		m.on = map[string]*machine{}
	}
	if one := m.on[v.ID]; one != nil && one.running() {
		return nil
	}
	one, err := m.start(v)
	if errors.Is(err, errNoAgent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start vm %s: %w", v.ID, err)
	}
	m.on[v.ID] = one
	return nil
}

func (m *Machines) start(v VM) (*machine, error) {
	dir, err := os.MkdirTemp(m.Dir, "vm-*")
	if err != nil {
		return nil, err
	}
	one, err := m.run(v, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return one, err
}

func (m *Machines) run(v VM, dir string) (*machine, error) {
	config, err := Unpack(v.UserData, v.Address, dir)
	if err == nil && config == "" {
		err = errNoAgent
	}
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"-c", Enclose + `exec "$@"`, "agentvm", Identity(dir)}
	for _, d := range v.Disks {
		if !strings.HasPrefix(d.Device, "/dev/") || strings.Contains(d.Device, "..") {
			return nil, fmt.Errorf("disk %q is not below /dev", d.Device)
		}
		args = append(args, d.Device, d.Path)
	}
	c := exec.Command("/bin/sh", append(args, "--", m.Agent, config)...)
	c.Stdout, c.Stderr = log, log
	// It dies with this program, and its group with the emulator's power cut.
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	one := &machine{process: c, dir: dir, ended: make(chan struct{})}
	go func() {
		_ = c.Wait()
		close(one.ended)
	}()
	return one, nil
}

func (o *machine) running() bool {
	select {
	case <-o.ended:
		return false
	default:
		return true
	}
}

// kill ends the process with all that it started, and waits for its end.
func (o *machine) kill() {
	_ = syscall.Kill(-o.process.Process.Pid, syscall.SIGKILL)
	<-o.ended
	_ = os.RemoveAll(o.dir)
}

// Stop cuts the power of a VM. One that is off stays off.
func (m *Machines) Stop(id string) {
	m.mu.Lock()
	one := m.on[id]
	delete(m.on, id)
	m.mu.Unlock()
	if one != nil {
		one.kill()
	}
}

// Running reports whether the agent of a VM runs: one that crashed does not.
func (m *Machines) Running(id string) bool {
	m.mu.Lock()
	one := m.on[id]
	m.mu.Unlock()
	return one != nil && one.running()
}

// Log returns what the agent of a VM that is on has written, for messages.
func (m *Machines) Log(id string) string {
	m.mu.Lock()
	one := m.on[id]
	m.mu.Unlock()
	if one == nil {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(one.dir, "log"))
	return string(text)
}

// Close cuts the power of all VMs, for good.
func (m *Machines) Close() {
	m.mu.Lock()
	m.closed = true
	all := m.on
	m.on = nil
	m.mu.Unlock()
	var wait sync.WaitGroup
	for _, one := range all {
		wait.Go(one.kill)
	}
	wait.Wait()
}
