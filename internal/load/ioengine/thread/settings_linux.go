package thread

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ioprioWhoProcess says that ioprio_set(2) is about one process or thread.
const ioprioWhoProcess = 1

func (t *Settings) apply() error {
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
		class = BestEffort
	}
	// io_uring and libaio take the priority of the thread that submits.
	value := uintptr(NewPriority(class, t.prio))
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, value); errno != 0 {
		return fmt.Errorf("prio: %w", errno)
	}
	return nil
}
