package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/wait"
)

const (
	bootTimeLimit     = 5 * time.Minute // of daemons, on a machine that is busy
	shutdownTimeLimit = 30 * time.Second
	restartPause      = time.Second
)

// progressFile is the descriptor on which keepers and hosts tell how far they are.
const progressFile = 3

// runHost is a host: its first process, from power on to the end.
func runHost(dir, name string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM) // first, so that an early signal is not lost
	progress := os.NewFile(progressFile, "progress")
	unix.CloseOnExec(progressFile)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return errors.New("the keeper of the lab ended")
	}
	l, err := load(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	number := 1
	for i := range l.Hosts {
		if l.Hosts[i].Name == name {
			number = i + 1
		}
	}
	if err := errors.Join(unix.Sethostname([]byte(name)), mountHost(l, h)); err != nil {
		return err
	}
	if err := buildHostNetwork(l, h, number); err != nil {
		return err
	}
	n := newNursery()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	faults := make(chan error, 1)
	go func() { faults <- bootHost(ctx, l, h, n) }()
	for {
		select {
		case err := <-faults:
			if err != nil {
				return err
			}
			if _, err := io.WriteString(progress, "up\n"); err != nil {
				return err
			}
		case <-stop:
			cancel()
			shutDown(n)
			return nil
		}
	}
}

// bootHost starts the servers of a host and returns when they answer.
func bootHost(ctx context.Context, l *Lab, h Host, n *nursery) error {
	life := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeLimit, errors.New("its servers do not answer"))
	defer cancel()
	if l.SSH {
		server, err := findProgram("sshd")
		if err != nil {
			return err
		}
		supervise(life, n, server, "-D", "-e", "-f", filepath.Join(h.Dir, "sshd_config"))
		if err := waitForServer(ctx, "tcp", net.JoinHostPort(h.Address.String(), "22")); err != nil {
			return fmt.Errorf("start sshd: %w", err)
		}
	}
	if !l.Libvirt {
		return nil
	}
	server, err := findProgram("libvirtd")
	if err != nil {
		return err
	}
	supervise(life, n, server, "--config", "/etc/libvirt/libvirtd.conf")
	if err := waitForServer(ctx, "unix", "/run/libvirt/libvirt-sock"); err != nil {
		return fmt.Errorf("start libvirtd: %w", err)
	}
	return defineLibvirt(ctx, h, n)
}

// supervise keeps a server running until ctx ends, as the init of a host does. What it prints is in the host's log.
func supervise(ctx context.Context, n *nursery, argv ...string) {
	go func() {
		for ; ctx.Err() == nil; time.Sleep(restartPause) {
			c, err := n.start(argv, []*os.File{nil, os.Stdout, os.Stderr}, nil)
			if err == nil {
				<-c.gone
				err = c.outcome()
			}
			fmt.Fprintf(os.Stderr, "%s ended and is started again: %v\n", argv[0], err)
		}
	}()
}

func waitForServer(ctx context.Context, network, address string) error {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			return conn.Close()
		}
		if wait.For(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// defineLibvirt makes the pool and the network of a host, when it boots for the first time.
func defineLibvirt(ctx context.Context, h Host, n *nursery) error {
	virsh, err := findProgram("virsh")
	if err != nil {
		return err
	}
	done := filepath.Join(h.Dir, "defined")
	if _, err := os.Stat(done); err == nil {
		_, err := n.run(ctx, virsh, "--connect", "qemu:///system", "uri") // it answers when it has loaded everything
		return err
	}
	for _, command := range [][]string{
		{"net-define", filepath.Join(h.Dir, "network.xml")}, {"net-autostart", PoolName}, {"net-start", PoolName},
		{"pool-define", filepath.Join(h.Dir, "pool.xml")}, {"pool-autostart", PoolName}, {"pool-start", PoolName},
	} {
		if _, err := n.run(ctx, append([]string{virsh, "--quiet", "--connect", "qemu:///system"}, command...)...); err != nil {
			return fmt.Errorf("set up libvirt: %s: %w", command[0], err)
		}
	}
	return os.WriteFile(done, nil, 0o600)
}

// shutDown asks all processes of the host to end, as an operating system does that stops. Guests get the same signal,
// by which QEMU ends in order. What is left ends with the first process.
func shutDown(n *nursery) {
	_ = unix.Kill(-1, unix.SIGTERM)
	for until := time.Now().Add(shutdownTimeLimit); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if n.reap() {
			return
		}
		_ = unix.Kill(-1, unix.SIGTERM) // also what was started meanwhile
	}
}

// mountHost gives the host folders of its own in the places of the machine's.
func mountHost(l *Lab, h Host) error {
	lab, err := unix.Open(l.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.Dir, err)
	}
	defer func() { _ = unix.Close(lab) }()
	if err := freshMounts(); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64m"); err != nil {
		return err
	}
	for _, dir := range []string{"/run/lock", "/run/sshd", "/run/libvirt"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	binds := [][2]string{
		{"run", "/run/libvirt"}, {"boot-id", "/proc/sys/kernel/random/boot_id"}, {"machine-id", "/etc/machine-id"}, {"hostname", "/etc/hostname"}, {"hosts", "/etc/hosts"},
	}
	if l.Libvirt {
		binds = append(binds, [][2]string{
			{"etc", "/etc/libvirt"}, {"lib", "/var/lib/libvirt"}, {"log", "/var/log/libvirt"}, {"cache", "/var/cache/libvirt"},
		}...)
	}
	for _, f := range [][2]string{{"uuid", "/sys/class/dmi/id/product_uuid"}, {"serial", "/sys/class/dmi/id/product_serial"}} {
		if _, err := os.Stat(f[1]); err == nil {
			binds = append(binds, f)
		}
	}
	if l.SSH {
		binds = append(binds, [][2]string{{"tmp", "/tmp"}, {"var-tmp", "/var/tmp"}, {"home", "/root"}}...)
	}
	here := fmt.Sprintf("/proc/self/fd/%d", lab)
	for _, b := range binds {
		if err := mount(filepath.Join(here, "hosts", h.Name, b[0]), b[1], "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return restoreLab(l.Dir, here, lab)
}

// restoreLab makes the lab's folder visible again where a mount has hidden it: it has one path everywhere.
func restoreLab(dir, here string, lab int) error {
	var was, is unix.Stat_t
	if err := unix.Fstat(lab, &was); err != nil {
		return err
	}
	if err := unix.Stat(dir, &is); err == nil && was.Dev == is.Dev && was.Ino == is.Ino {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return mount(here, dir, "", unix.MS_BIND|unix.MS_REC, "")
}

// freshMounts parts a new mount namespace from its parent, and shows the processes and interfaces of the other new
// namespaces.
func freshMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return errors.Join(mount("proc", "/proc", "proc", flags, ""), mount("sysfs", "/sys", "sysfs", flags, ""))
}

func mount(source, where, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, where, kind, flags, data); err != nil {
		return fmt.Errorf("mount on %s: %w", where, err)
	}
	return nil
}
