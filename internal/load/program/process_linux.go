package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confine makes the kernel kill the program when this process dies for any reason, keeps signals to this process's terminal or group from
// it, and sets its user and namespaces.
func (c Command) confine(cmd *exec.Cmd, alone bool) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if c.Account != nil {
		a.Credential = &syscall.Credential{Uid: c.Account.UID, Gid: c.Account.GID}
	}
	if alone {
		a.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWIPC
		if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
			a.Cloneflags |= unix.CLONE_NEWUSER
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		}
	}
	cmd.SysProcAttr = a
}

// onFirstThread reports whether the calling thread is the one that the process began with.
func onFirstThread() bool { return unix.Gettid() == os.Getpid() }

// ownMounts gives the calling thread, and what it starts, mounts of its own. It reports whether it has changed the thread, and whether
// mounts are now its own: a copy of those of a namespace, or of this process.
func ownMounts(of *os.File) (changed, own bool) {
	if os.Geteuid() != 0 || unix.Unshare(unix.CLONE_NEWNS) != nil {
		return false, false
	}
	if of != nil && join(of) != nil {
		return true, false
	}
	return true, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil // so that other programs do not see the next ones
}

// mount gives a thread with its own mounts a /dev/shm, in which a killed program cannot leave anything, and the folder of the command.
func (c Command) mount(own bool) error {
	if own {
		_ = unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	}
	if c.Mount == "" {
		return nil
	}
	if !own {
		return errors.New("the folder of its files needs mounts of its own, which the system does not allow")
	}
	if err := unix.Mount(c.Mount, MountPoint, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount the folder of its files at %s: %w", MountPoint, err)
	}
	return nil
}

// outputBytes is the size of a widened pipe, and what Run keeps of an output.
const outputBytes = 1 << 20

// Widen makes the buffer of a pipe large enough for several seconds of output, so that a program does not block while its reader
// is busy.
func Widen(pipe *os.File) { _, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, outputBytes) }

// cpuOf returns the CPU time of a process so far, 0 if unknown.
func cpuOf(pid int) time.Duration {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
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

// FreeBefore returns the space of a file's first bytes to its file system; the file keeps its length. A program may write behind
// them for hours without filling the disk. File systems that cannot do that keep the space.
func FreeBefore(f *os.File, bytes int64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
}
