package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// thisMachine says where this process runs.
func thisMachine() (machine, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return machine{}, fmt.Errorf("identify this machine: %w", err)
	}
	processes, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return machine{}, fmt.Errorf("identify this machine: %w", err)
	}
	return machine{Boot: strings.TrimSpace(string(boot)), Processes: processes}, nil
}

// processNow identifies a process that runs, or is not yet waited for.
func processNow(id int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return process{}, err
	}
	fields, err := statFields(text)
	if err != nil {
		return process{}, err
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return process{}, unix.ESRCH
	}
	const startField = 22 - 3
	start, err := strconv.ParseUint(fields[startField], 10, 64)
	return process{id, start}, err
}

// statFields returns the fields of /proc/ID/stat from the third on, the state. The second is the program's name, which
// may hold anything.
func statFields(text []byte) ([]string, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return nil, errors.New("no name in stat")
	}
	fields := strings.Fields(string(text[end+1:]))
	const fieldsMin = 20
	if len(fields) < fieldsMin {
		return nil, errors.New("few fields in stat")
	}
	return fields, nil
}

// Alive reports whether the keeper of a lab runs.
func (l *Lab) Alive() bool {
	here, err := thisMachine()
	return err == nil && here == l.Machine && l.Keeper.runs()
}

// runs reports whether a process of this machine runs.
func (p process) runs() bool {
	if p.ID == 0 {
		return false
	}
	now, err := processNow(p.ID)
	return err == nil && now == p
}

// killTimeLimit is how long killed processes may take to end: reads and writes that a disk holds up end first.
const killTimeLimit = 2 * time.Minute

// kill ends a process and whatever lives in its PID namespace, and waits until all of it is gone. A process that is already
// gone is skipped, even if another has its id now.
func kill(p process) error {
	fd, err := unix.PidfdOpen(p.ID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect process %d: %w", p.ID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// Only now: the descriptor refers to one fixed process, not necessarily the recorded one.
	now, err := processNow(p.ID)
	if err != nil || now != p {
		return nil //nolint:nilerr // it is gone
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", p.ID, err)
	}
	for until := time.Now().Add(killTimeLimit); ; {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 1000)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the end of process %d: %w", p.ID, err)
		case time.Now().After(until):
			return fmt.Errorf("process %d was killed and does not end", p.ID)
		}
	}
}
