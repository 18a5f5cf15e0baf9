package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// IsInit reports whether this process is the first one of a machine that package image made. A container's first process is
// an ordinary agent.
func IsInit() bool {
	if os.Getpid() != 1 {
		return false
	}
	_, err := os.Stat(ModulesFile)
	return err == nil
}

// machine is the state of the first process. Its console is where a person or a provider reads errors.
type machine struct {
	console *os.File
	random  <-chan struct{} // closed once the kernel has random numbers
	arguments
}

// say writes one line to the console.
func (m *machine) say(format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	// The carriage return is for serial lines whose other end is a file or a terminal in raw mode.
	fmt.Fprintf(m.console, "bragg: %s\r\n", line)
}

// Init is the whole life of the machine. It ends by switching off the machine and never returns.
func Init() int {
	m := &machine{console: os.Stderr}
	outcome := m.live()
	m.end(outcome)
	for { // the kernel panics when its first process ends
		time.Sleep(time.Hour)
	}
}

// outcome is the result of a machine's life: how it ends.
type outcome struct {
	reboot bool
	reason string
}

func (m *machine) live() (o outcome) {
	defer m.survive(&o)
	if err := mountAll(); err != nil {
		return outcome{reason: err.Error()}
	}
	if console, err := os.OpenFile("/dev/console", os.O_WRONLY, 0); err == nil {
		m.console = console
	}
	text, _ := os.ReadFile("/proc/cmdline")
	m.arguments = readArguments(string(text))
	m.loadModules()
	m.random = randomness()
	buttons := m.watchButtons()
	signals := watchSignals()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { ended <- o }()
		defer m.survive(&o)
		o = m.serve(ctx)
	}()
	select {
	case o := <-ended:
		return o
	case o = <-buttons:
	case o = <-signals:
	}
	cancel()
	m.say("%s: stopping the agent", o.reason)
	select {
	case <-ended:
	case <-time.After(agentStopsWithin + 5*time.Second):
	}
	return o
}

// survive turns a panic into a message: otherwise the kernel would panic.
func (m *machine) survive(o *outcome) {
	if fault := recover(); fault != nil {
		m.say("defect: %v", fault)
		fmt.Fprintf(m.console, "%s\r\n", strings.ReplaceAll(string(debug.Stack()), "\n", "\r\n"))
		*o = outcome{reason: "internal error of PID 1"}
	}
}

// serve reads the VM's identity and runs its agent until the agent or ctx ends.
func (m *machine) serve(ctx context.Context) outcome {
	seed, err := m.findSeed(ctx)
	if err != nil {
		return outcome{reason: err.Error()}
	}
	if m.address != "" { // a VM that is started by hand may override it
		seed.Network = []Link{{Address: m.address, Gateway: m.gateway}}
		if err := seed.Network[0].Check(); err != nil {
			return outcome{reason: "kernel command line: " + err.Error()}
		}
	}
	m.say("VM %q, instance %s", seed.Agent.VM, seed.InstanceID)
	if err := become(seed); err != nil {
		return outcome{reason: err.Error()}
	}
	select {
	case <-m.random:
	case <-ctx.Done():
		return outcome{reason: ctx.Err().Error()}
	}
	if err := m.connect(ctx, seed); err != nil {
		return outcome{reason: err.Error()}
	}
	config, err := json.Marshal(seed.Agent)
	if err != nil {
		return outcome{reason: err.Error()}
	}
	return m.keepAgent(ctx, string(config))
}

// randomness makes the kernel collect entropy. A guest has no other source of it, and the kernel only hurries for a blocked
// reader.
func randomness() <-chan struct{} {
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		var b [1]byte
		for {
			if _, err := unix.Getrandom(b[:], 0); err != unix.EINTR {
				return
			}
		}
	}()
	return ready
}

// become sets the names of the machine and writes its files.
func become(s Seed) error {
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set hostname %q: %w", s.Hostname, err)
	}
	if err := os.WriteFile("/etc/machine-id", []byte(s.MachineID+"\n"), 0o444); err != nil {
		return err
	}
	for name, content := range s.Files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// mountAll mounts the usual file systems of Linux.
func mountAll() error {
	for _, f := range []struct {
		kind, path string
		flags      uintptr
	}{
		{"proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"devtmpfs", "/dev", unix.MS_NOSUID},
		{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/tmp", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := os.MkdirAll(f.path, 0o755); err != nil {
			return err
		}
		// A kernel may have mounted /dev itself.
		if err := unix.Mount(f.kind, f.path, f.kind, f.flags, ""); err != nil && err != unix.EBUSY {
			return fmt.Errorf("mount %s: %w", f.path, err)
		}
	}
	return nil
}

// arguments are Bragg's parameters on the kernel's command line.
type arguments struct {
	address, gateway string
	seedWithin       time.Duration
}

const seedWithinDefault = time.Minute

// readArguments reads parameters that begin with "bragg." and skips those of the kernel.
func readArguments(line string) arguments {
	a := arguments{seedWithin: seedWithinDefault}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "bragg.address":
			a.address = value
		case "bragg.gateway":
			a.gateway = value
		case "bragg.seed_within":
			if d, err := time.ParseDuration(value); err == nil && d >= 0 {
				a.seedWithin = d
			}
		}
	}
	return a
}
