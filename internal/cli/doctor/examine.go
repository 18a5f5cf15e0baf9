package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/unit"
)

// examine checks everything that a local run depends on, in the order in which doctor prints it.
func examine(runs string) []examination {
	out := []examination{
		examineKernel(), examineProcessor(), examineMemory(),
	}
	out = append(out, examineRuns(runs)...)
	return append(out,
		examineIOUring(), examineLoopback(), examineFiles(), examineCgroup("/sys/fs/cgroup"),
		examineProgram("fio", "fio", "--version", "required only for --engine fio"),
		examineChromium(), examineUser(),
	)
}

func examineKernel() examination {
	return examination{Name: "kernel", Health: healthGood, Found: runtime.GOOS + " " + session.Kernel()}
}

func examineProcessor() examination {
	env := session.Environment("/")
	e := examination{Name: "processor", Health: healthGood, Found: fmt.Sprintf("%d × %s", runtime.NumCPU(), env["cpu model"])}
	if env["virtual machine"] != "" {
		e.Found += ", virtual"
	}
	if clock := env["clock source"]; clock != "" {
		e.Found += ", clock " + clock
	}
	if governor := env["cpu governor"]; governor != "" {
		e.Found += ", governor " + governor
		if governor != "performance" {
			e.Health = healthLess
			e.Advice = "latencies vary with the clock rate: cpupower frequency-set -g performance"
			e.Package = "linux-cpupower"
		}
	}
	return e
}

// memoryBytesMin is the memory that the virtual machines of a rehearsal and bragg itself need.
const memoryBytesMin = 512 * unit.MiB

func examineMemory() examination {
	available := session.MemoryAvailableBytes()
	e := examination{Name: "memory", Health: healthGood}
	e.Found = fmt.Sprintf("%s, %s available", unit.FormatBytes(session.MemoryBytes()), unit.FormatBytes(available))
	if available < memoryBytesMin {
		e.Health = healthLess
		e.Advice = "a rehearsal needs " + unit.FormatBytes(memoryBytesMin) + ": stop other programs"
	}
	return e
}

// examineRuns checks the folder of runs: write permission, capabilities of its file system, free space.
func examineRuns(runs string) []examination {
	folder := examination{Name: "runs folder", Health: healthGood, Found: runs}
	dir, made, err := writableFolder(runs)
	if err != nil {
		folder.Health = healthMissing
		folder.Found = err.Error()
		folder.Advice = "choose a writable folder with --runs DIR"
		return []examination{folder}
	}
	defer removeFolders(made)
	if m, err := session.MountOf(dir); err == nil {
		folder.Found += " on " + m.Type
		if m.Type == "tmpfs" || m.Type == "overlay" {
			folder.Health = healthLess
			folder.Advice = m.Type + " is not a disk: numbers are not meaningful; choose a folder on a disk with --runs DIR"
		}
	}
	return []examination{folder, examineSpace(dir), examineDirect(dir), examineReflink(dir)}
}

// writableFolder creates the folder if it is missing, verifies that it is writable, and returns the folders it created.
func writableFolder(dir string) (place string, made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		removeFolders(made)
		return "", nil, err
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		removeFolders(made)
		return "", nil, err
	}
	return dir, made, errors.Join(f.Close(), os.Remove(f.Name()))
}

// removeFolders removes folders that are empty, the innermost first.
func removeFolders(dirs []string) {
	for _, d := range dirs {
		if os.Remove(d) != nil {
			return // in use by now
		}
	}
}

// spaceBytesMin is the default footprint of a rehearsal at the share of the free space that it may take.
const spaceBytesMin = 8 * unit.GiB

func examineSpace(dir string) examination {
	e := examination{Name: "free space", Health: healthGood}
	free, total, err := session.Space(dir)
	if err != nil {
		e.Health, e.Found = healthLess, err.Error()
		return e
	}
	e.Found = fmt.Sprintf("%s of %s", unit.FormatBytes(free), unit.FormatBytes(total))
	if free < spaceBytesMin {
		e.Health = healthLess
		e.Advice = "a rehearsal uses at most a quarter of the free space: less than 2 GiB here"
	}
	return e
}

func examineDirect(dir string) examination {
	e := examination{Name: "direct I/O", Health: healthGood, Found: "works in the runs folder"}
	// A new file: what has a name that can be guessed may be a link of others.
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		e.Health, e.Found = healthLess, err.Error()
		return e
	}
	defer os.Remove(f.Name())
	defer f.Close()
	fd, err := unix.Open(f.Name(), unix.O_RDWR|unix.O_DIRECT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		e.Health = healthMissing
		e.Found = "refused: " + err.Error()
		e.Advice = "no O_DIRECT on this file system: load would measure the page cache; choose another with --runs DIR"
		return e
	}
	if err := unix.Close(fd); err != nil {
		e.Health, e.Found = healthLess, err.Error()
	}
	return e
}

func examineReflink(dir string) examination {
	e := examination{Name: "reflink", Health: healthGood, Found: "clones and snapshots share blocks"}
	if err := tryReflink(dir); err != nil {
		e.Health = healthLess
		e.Found = "not supported: clones and snapshots are full copies"
		e.Advice = "use XFS or Btrfs for instant clones and snapshots"
	}
	return e
}

func tryReflink(dir string) error {
	source, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(source.Name())
	defer source.Close()
	clone, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(clone.Name())
	defer clone.Close()
	if _, err := source.Write(make([]byte, 4096)); err != nil {
		return err
	}
	return unix.IoctlFileClone(int(clone.Fd()), int(source.Fd()))
}

// ioUringParamsBytes is the size of struct io_uring_params, which the kernel fills in.
const ioUringParamsBytes = 120

func examineIOUring() examination {
	e := examination{Name: "io_uring", Health: healthGood, Found: "works"}
	var params [ioUringParamsBytes]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno == 0 {
		if err := unix.Close(int(fd)); err != nil {
			e.Health, e.Found = healthLess, err.Error()
		}
		return e
	}
	e.Health = healthLess
	e.Found = "not available: " + errno.Error() + "; using libaio or threads"
	switch errno {
	case unix.EPERM:
		e.Advice = "sysctl kernel.io_uring_disabled=0, or allow io_uring in the seccomp profile of the container"
	case unix.ENOSYS:
		e.Advice = "requires Linux 5.1 or later"
	case unix.ENOMEM:
		e.Advice = "raise the limit of locked memory: ulimit -l unlimited"
	}
	return e
}

func examineLoopback() examination {
	e := examination{Name: "loopback", Health: healthGood, Found: "all addresses of 127/8 available"}
	l, err := net.Listen("tcp", "127.77.0.1:0")
	if err != nil {
		e.Health = healthLess
		e.Found = err.Error()
		e.Advice = "VMs of the local target share 127.0.0.1; exporter ports may conflict"
		return e
	}
	if err := l.Close(); err != nil {
		e.Health, e.Found = healthLess, err.Error()
	}
	return e
}

// filesMin lets a run of 200 virtual machines with ten disks each open all files twice.
const filesMin = 4096

func examineFiles() examination {
	e := examination{Name: "open files", Health: healthGood}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		e.Health, e.Found = healthLess, err.Error()
		return e
	}
	e.Found = fmt.Sprintf("at most %d", limit.Max)
	if limit.Max < filesMin {
		e.Health = healthLess
		e.Advice = "runs with many VMs need more: ulimit -n 65536"
	}
	return e
}

func examineCgroup(root string) examination {
	e := examination{Name: "cgroup", Health: healthGood}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		e.Health = healthLess
		e.Found = "no cgroup v2 hierarchy: no CPU and memory limits for VMs of the local target"
		e.Advice = "boot with systemd.unified_cgroup_hierarchy=1"
		return e
	}
	e.Found = "v2 with " + strings.Join(strings.Fields(string(controllers)), ", ")
	if err := unix.Access(root, unix.W_OK); err != nil {
		e.Health = healthLess
		e.Found += ", not writable: no CPU and memory limits for VMs of the local target"
		e.Advice = "run as root, or in a delegated scope: systemd-run --user --scope -p Delegate=yes bragg …"
	}
	return e
}

// programDeadline bounds how long a program may take to print its version.
const programDeadline = 5 * time.Second

func examineProgram(name, pkg, flag, advice string) examination {
	e := examination{Name: name, Health: healthGood}
	path, err := exec.LookPath(name)
	if err != nil {
		e.Health, e.Found, e.Advice, e.Package = healthLess, "not installed", advice, pkg
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), programDeadline)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, flag).Output()
	if err != nil {
		e.Health, e.Found, e.Advice = healthLess, path+" does not start: "+err.Error(), "reinstall it"
		return e
	}
	line, _, _ := strings.Cut(string(text), "\n")
	e.Found = strings.TrimSpace(line) + " at " + path
	return e
}

func examineChromium() examination {
	e := examination{Name: "chromium", Health: healthGood}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			e.Found = path
			return e
		}
	}
	e.Health, e.Found, e.Package = healthLess, "not installed", "chromium"
	e.Advice = "needed only by the report tests of this project"
	return e
}

func examineUser() examination {
	e := examination{Name: "user", Health: healthGood, Found: "root"}
	if uid := os.Geteuid(); uid != 0 {
		e.Found = fmt.Sprintf("uid %d: sufficient, except for cgroup limits and dropping caches", uid)
	}
	return e
}
