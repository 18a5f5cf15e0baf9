package fio

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithUs makes the kernel kill fio when this process dies for any reason. fio stays in the process group of this
// process, so that killing the group of an agent also kills fio.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// outputBytes is the size of the pipe buffer: several seconds of documents, so that fio does not block while the reader is
// busy.
const outputBytes = 1 << 20

func widen(pipe *os.File) { _, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, outputBytes) }

// cpu returns the CPU time of the process so far, 0 if unknown.
func (p *process) cpu() time.Duration {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	// Field 2, the name, is in parentheses and may hold any character; user and system ticks are fields 14 and 15.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / clockTicks)
}

// clockTicks is the unit of /proc/PID/stat, 100 per second for every Linux program.
const clockTicks = 100
