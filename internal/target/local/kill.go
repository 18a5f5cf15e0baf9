package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
)

// markVariable is in the environment of every process of a VM, with processMark as its value. Children inherit it, so that
// even those that left the process group are found, and no other process can be mistaken for one: neither one with a reused
// pid nor one with a similar name.
const markVariable = "BRAGG_VM="

func (m *machine) processMark() string { return m.mark + "/" + m.id }

// PowerOffVMs kills all processes of VMs at once and without notice, like a power cut. A VM that no longer exists is off.
func (t *Target) PowerOffVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	machines, err := t.resolve(tag, vms, true)
	if err != nil {
		return fmt.Errorf("power off VMs: %w", err)
	}
	err = onEach(ctx, "power off", vms, func(i int) error {
		if m := byID(machines, vms[i].ID); m != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			t.kill(m)
		}
		return nil
	})
	sweep(machines)
	return err
}

// killAll kills the processes of VMs.
func (l *launcher) killAll(list []*machine) {
	for _, m := range list {
		m.mu.Lock()
		l.kill(m)
		m.mu.Unlock()
	}
}

// kill kills the process of a VM, if it has one, and waits until it is gone. The caller holds the lock of m.
func (l *launcher) kill(m *machine) {
	p := m.process
	if p == nil {
		return
	}
	pid := p.command.Process.Pid
	if p.alive() {
		l.meter.stopping(m) // while its children can still be counted
		l.groups.kill(p.group)
		// The process leads its group: until it has been waited for, no other process can have that number.
		_ = p.command.Process.Kill()
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	<-p.exited
	l.meter.stopped(m, p)
	if !p.dialed {
		_ = p.conn.Close()
	}
	l.groups.remove(m.id)
	m.process = nil
	m.record.VM.Power = target.PowerOff
}

// sweep kills the remaining processes of VMs: those that left the group of their VM's process, or whose controller died.
func sweep(machines []*machine) {
	const (
		roundsMax = 200
		pause     = 5 * time.Millisecond
	)
	for range roundsMax {
		marked := markedProcesses()
		left := 0
		for _, m := range machines {
			for _, pid := range marked[m.processMark()] {
				left++
				killMarked(pid, m.processMark())
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(pause)
	}
}

// markedProcesses returns the processes of all VMs of all controllers on this machine, by their mark.
func markedProcesses() map[string][]int {
	marked := map[string][]int{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return marked
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if mark, ok := markOf(pid); ok {
			marked[mark] = append(marked[mark], pid)
		}
	}
	return marked
}

// startingLooks bounds the milliseconds that a process may be starting.
const startingLooks = 100

// markOf returns the mark of a process. An ended process has none, even before it was waited for.
func markOf(pid int) (string, bool) {
	path := fmt.Sprintf("/proc/%d/environ", pid)
	environment, err := os.ReadFile(path)
	for looks := 0; err == nil && len(environment) == 0 && looks < startingLooks; looks++ {
		begun := !starting(pid) // before the look that counts
		if environment, err = os.ReadFile(path); begun {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return "", false
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(markVariable)); ok {
			return string(value), true
		}
	}
	return "", false
}

// starting reports whether the kernel has not set up the program of a process yet: its starter goes on before its arguments and environment are
// to be seen. Threads of the kernel and ended processes have no program.
func starting(pid int) bool {
	if arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || len(arguments) > 0 {
		return false
	}
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

// killMarked kills a process if it carries the mark. The descriptor pins the process: check and signal apply to the same
// one even if its number is reused in between.
func killMarked(pid int, mark string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if found, ok := markOf(pid); ok && found == mark {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
