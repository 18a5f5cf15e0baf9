package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/target"
)

// process is one power cycle of a VM.
type process struct {
	command *exec.Cmd
	exited  chan struct{} // closed once the process is gone and waited for
	conn    *countedConn  // the controller's end of the socket pair
	dialed  bool          // conn was handed out, and its new owner closes it
	group   string        // path of its cgroup, or ""
}

// countedConn counts the bytes between the controller and a VM, which are all of a VM's network traffic.
type countedConn struct {
	net.Conn
	received atomic.Int64 // by the VM
	sent     atomic.Int64 // by the VM
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.received.Add(int64(n))
	return n, err
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// agentConfig is the configuration of an agent's process; package agent reads it as its Config.
type agentConfig struct {
	VM           string        `json:"vm"`
	VCPUs        int           `json:"vcpus,omitempty"`
	RAMBytes     int64         `json:"ram_bytes,omitempty"`
	Devices      []agentDevice `json:"devices"`
	ConnectionFD int           `json:"connection_fd"`
	MetricsFD    int           `json:"metrics_fd,omitempty"`
}

type agentDevice struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
}

// PowerOnVMs starts the processes of VMs. Running ones are skipped.
func (t *Target) PowerOnVMs(ctx context.Context, tag target.Tag, vms []target.VM) error {
	marked := markedProcesses()
	return t.each(ctx, "power on", tag, vms, func(m *machine) error {
		switch err := t.check(m.record.VM.NodeID); {
		case !m.record.complete():
			return errors.New("its creation was interrupted")
		case err != nil:
			return err
		case m.process != nil && m.process.alive():
			return nil
		}
		t.kill(m)
		if len(marked[m.processMark()]) > 0 {
			sweep([]*machine{m}) // left by a dead controller, and about to end by themselves
		}
		address, err := t.address.reserve(m.id, m.record.VM.Addresses[0])
		if err != nil {
			return err
		}
		p, err := t.start(m, address)
		if err != nil {
			return err
		}
		m.process = p
		m.record.VM.Power = target.PowerOn
		t.meter.started(m, p)
		return nil
	})
}

// launcher starts and kills the processes of VMs.
type launcher struct {
	command []string // of an agent
	store   *store
	spawner *spawner
	groups  *cgroups
	meter   *meter
}

// start starts the process of a VM at an address. The caller holds the lock of m.
func (l *launcher) start(m *machine, address string) (*process, error) {
	near, far, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	files := []*os.File{far}
	metrics := listenMetrics(address)
	if metrics != nil {
		defer metrics.Close()
		files = append(files, metrics)
	}
	argument, err := m.argument(len(files))
	if err != nil {
		_ = near.Close()
		return nil, err
	}
	p := &process{exited: make(chan struct{}), conn: near}
	p.group, err = l.launch(m, argument, func(c *exec.Cmd) error {
		p.command, c.ExtraFiles = c, files
		// In its own session, the VM does not receive the terminal's signals and is a single process group. The death
		// signal also reaches a stopped process, unlike the end of the socket pair.
		c.SysProcAttr.Setsid, c.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
		return l.spawner.start(c)
	})
	if err != nil {
		_ = near.Close()
		return nil, fmt.Errorf("start its process: %w", err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

// argument is the agent's configuration. Inherited files begin at descriptor 3: the connection, then the metrics.
func (m *machine) argument(files int) (string, error) {
	const firstInherited = 3
	config := agentConfig{
		VM: m.record.VM.Name, VCPUs: m.record.Spec.VCPUs, RAMBytes: m.record.Spec.RAMBytes,
		ConnectionFD: firstInherited, Devices: m.devices(),
	}
	if files > 1 {
		config.MetricsFD = firstInherited + 1
	}
	text, err := json.Marshal(config)
	return string(text), err
}

// devices are the disks of the VM in its agent's configuration. The caller holds the lock of m.
func (m *machine) devices() []agentDevice {
	devices := []agentDevice{}
	for _, d := range m.record.VM.Disks {
		devices = append(devices, agentDevice{d.Device, d.Path, d.SizeBytes})
	}
	return devices
}

// launch starts the agent of a VM with start, in its own cgroup if the system allows it, and returns the path of the group.
// start may be called twice, and completes the command.
func (l *launcher) launch(m *machine, argument string, start func(*exec.Cmd) error) (group string, err error) {
	log, err := durable.OpenFile(l.store.path(m.id, "agent.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	command := func() *exec.Cmd {
		c := exec.Command(l.command[0], append(slices.Clone(l.command[1:]), argument)...)
		c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = l.store.path(m.id), log, log, &syscall.SysProcAttr{}
		c.Env = append(agentEnvironment(m.record.Spec.VCPUs), markVariable+m.processMark())
		return c
	}
	if g, err := l.groups.make(m.id, m.record.Spec.VCPUs, m.record.Spec.RAMBytes); err == nil {
		defer g.Close()
		c := command()
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(g.Fd())
		if start(c) == nil {
			return g.Name(), nil
		}
		// A container may forbid the system call that starts a process in a group. The VM then runs without limits.
		l.groups.remove(m.id)
	}
	return "", start(command())
}

func socketPair() (near *countedConn, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "agent")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = unix.Close(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return &countedConn{Conn: conn}, os.NewFile(uintptr(fds[1]), "controller"), nil
}

// listenMetrics opens the listener that the agent inherits: on node_exporter's port, or on any port if that one is in use
// on all addresses of the machine. Nil if it cannot listen on the address at all; the agent then has no metrics.
func listenMetrics(address string) *os.File {
	const exporterPort = "9100"
	for _, port := range []string{exporterPort, "0"} {
		l, err := net.Listen("tcp4", net.JoinHostPort(address, port))
		if err != nil {
			continue
		}
		defer l.Close()
		if f, err := l.(*net.TCPListener).File(); err == nil {
			return f
		}
	}
	return nil
}

// agentEnvironment passes on only what a program needs to run: the agent must not see secrets in the controller's
// environment.
func agentEnvironment(vcpus int) []string {
	kept := []string{"PATH=", "HOME=", "TMPDIR=", "LANG=", "LC_", "TZ=", "BRAGG_", "GODEBUG=", "GORACE=", "GOCOVERDIR=", "GOTRACEBACK="}
	var env []string
	for _, e := range os.Environ() {
		if slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(e, k) }) &&
			!strings.HasPrefix(e, markVariable) {
			env = append(env, e)
		}
	}
	if vcpus > 0 && vcpus < runtime.NumCPU() {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(vcpus)) // also takes effect without a cgroup
	}
	return env
}

// AddressOf returns the address that the VM was given; see target.Addresser.
func (t *Target) AddressOf(_ context.Context, vm target.VM) (string, error) {
	return target.FirstAddress(vm)
}

// DialAgent hands out the controller's end of the VM's socket pair, once per power cycle. Closing it ends the VM's process.
func (t *Target) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	m := t.known(vm.ID)
	if m == nil {
		return nil, fmt.Errorf("dial agent of vm %q: this program did not start it", vm.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.process == nil:
		return nil, fmt.Errorf("dial agent of vm %q: powered off", vm.Name)
	case !m.process.alive():
		return nil, fmt.Errorf("dial agent of vm %q: its process ended: %v%s", vm.Name, m.process.command.ProcessState,
			t.lastWords(m.id))
	case m.process.dialed:
		return nil, fmt.Errorf("dial agent of vm %q: connected already in this power cycle", vm.Name)
	}
	m.process.dialed = true
	return m.process.conn, nil
}

// lastWords returns the end of the log of a VM's process.
func (l *launcher) lastWords(id string) string {
	const bytesMax = 400
	f, err := os.Open(l.store.path(id, "agent.log"))
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(-bytesMax, io.SeekEnd); err != nil {
		_, _ = f.Seek(0, io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, bytesMax))
	if said := strings.TrimSpace(string(text)); said != "" {
		return ": " + said
	}
	return ""
}
