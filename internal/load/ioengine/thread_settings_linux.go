package ioengine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ioprio_set(2): who is one process or thread, and the class stands above 13 bits of data; best effort is class 2.
const (
	ioprioWhoProcess = 1
	ioprioClassShift = 13
	ioprioBestEffort = 2
)

func (t *threadSettings) apply() error {
	cpus, err := t.nodes.within(t.list())
	if err != nil {
		return err
	}
	if len(cpus) > 0 {
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("cpus_allowed: %w", err)
		}
	}
	if err := t.nodes.setMemoryPolicy(); err != nil {
		return err
	}
	if t.nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), t.nice); err != nil {
			return fmt.Errorf("nice: %w", err)
		}
	}
	if t.prioClass == 0 && t.prio == 0 {
		return nil
	}
	class := t.prioClass
	if class == 0 {
		class = ioprioBestEffort
	}
	// io_uring and libaio take the priority of the thread that submits.
	value := class<<ioprioClassShift | t.prio
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, uintptr(value)); errno != 0 {
		return fmt.Errorf("prio: %w", errno)
	}
	return nil
}
