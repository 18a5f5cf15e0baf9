// Package machine runs the VMs of the emulator of Prism as processes of this machine: a VM that is on is a bragg-agent with the
// identity that cloud-init's user data gives it, at an address of its own in 127/8.
//
//	Processes.Start ──▶ user data ──▶ files of the agent, its configuration
//	                └─▶ unshare: own mounts and processes ──▶ /dev/sdb, /dev/sdc, … are the files of its disks ──▶ bragg-agent
//	Processes.Stop  ──▶ SIGTERM, or SIGKILL to all of its processes at once
//	Folder          ──▶ one sparse file for each disk, image and disk of a recovery point
//
// Simulated: firmware, kernel and cloud-init itself, of which only the written files count. A disk is a regular file to the agent.
// Without root a VM has no disks.
package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/lab/agentvm"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// AgentPort is where agents of VMs listen.
const AgentPort = 7401

// stopMax is how long a guest may take to shut down.
const stopMax = 5 * time.Second

// Processes is the implementation of state.Machines. The exported fields are set before its first use.
type Processes struct {
	// Command starts an agent when its configuration's path is appended: {"/usr/bin/bragg-agent"}.
	Command []string
	Folder  string // for files of VMs
	// Ended is called when a guest ends by itself. It may be nil.
	Ended func(id string)

	mu      sync.Mutex
	running map[string]*process
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  *os.File
	stop bool // by Stop
}

// Start starts a VM; one that runs stays as it is.
func (p *Processes) Start(_ context.Context, m state.Machine) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[m.ID] != nil {
		return nil
	}
	dir := filepath.Join(p.Folder, m.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	config := ""
	if len(m.Addresses) > 0 { // without a network it answers nothing
		var err error
		if config, err = agentvm.Unpack(m.UserData, m.Addresses[0], dir); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if config == "" { // an image without an agent, or a VM without an identity: it is on and answers nothing
		fmt.Fprintln(log, "no agent's configuration in the user data")
	}
	cmd := command(p.Command, config, dir, m.Disks)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("start: %w", err)
	}
	one := &process{cmd: cmd, done: make(chan struct{}), log: log}
	if p.running == nil {
		p.running = map[string]*process{}
	}
	p.running[m.ID] = one
	go p.watch(m.ID, one)
	return nil
}

// watch waits for the end of a VM.
func (p *Processes) watch(id string, one *process) {
	err := one.cmd.Wait()
	p.mu.Lock()
	fmt.Fprintf(one.log, "ended: %v\n", errOrNone(err))
	_ = one.log.Close()
	if p.running[id] == one {
		delete(p.running, id)
	}
	byItself := !one.stop
	p.mu.Unlock()
	close(one.done)
	if byItself && p.Ended != nil {
		p.Ended(id)
	}
}

func errOrNone(err error) error {
	if err == nil {
		return errors.New("powered off")
	}
	return err
}

// Stop ends a VM and returns when none of its processes is left.
func (p *Processes) Stop(id string, graceful bool) {
	p.mu.Lock()
	one := p.running[id]
	if one != nil {
		one.stop = true
	}
	p.mu.Unlock()
	if one == nil {
		return
	}
	if graceful {
		pressButton(one.cmd.Process)
		select {
		case <-one.done:
			return
		case <-time.After(stopMax):
		}
	}
	cutPower(one.cmd.Process)
	<-one.done
}

// Running lists the ids of VMs that run.
func (p *Processes) Running() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.running {
		ids = append(ids, id)
	}
	return ids
}

// Console returns the end of what a VM printed, for tests.
func (p *Processes) Console(id string) string {
	text, err := os.ReadFile(filepath.Join(p.Folder, id, "console"))
	if err != nil {
		return err.Error()
	}
	const most = 4 << 10
	return strings.ToValidUTF8(string(text[max(0, len(text)-most):]), "?")
}

// Network is addresses of 127/8 for the VMs of one emulator.
type Network struct {
	Prefix netip.Prefix
	claim  net.Listener
}

// ClaimNetwork finds a network of 256 addresses that no other emulator of this machine uses: it listens at its first address.
func ClaimNetwork() (*Network, error) {
	for third := range 64 * 256 {
		at := netip.AddrFrom4([4]byte{127, byte(100 + third/256), byte(third), 0})
		l, err := net.Listen("tcp", netip.AddrPortFrom(at.Next(), AgentPort).String())
		if err == nil {
			return &Network{Prefix: netip.PrefixFrom(at, 24), claim: l}, nil
		}
	}
	return nil, errors.New("no network in 127/8 is free")
}

// Close makes the network available to others.
func (n *Network) Close() { _ = n.claim.Close() }
