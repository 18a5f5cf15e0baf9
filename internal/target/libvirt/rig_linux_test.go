package libvirt

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

func TestMain(m *testing.M) {
	labtest.Main()
	code := m.Run()
	if path, err := agentBinary(); err == nil && path != "" {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// wanted is set by the first test that needs agents in guests.
var wanted atomic.Bool

// agentBinary builds the agent once, as guests get it.
var agentBinary = sync.OnceValues(func() (string, error) {
	if !wanted.Load() {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "bragg-agent-*")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bragg-agent"), testreq.Build(dir, "github.com/braggdev/bragg/cmd/bragg-agent")
})

const guestTemplate = "guest"

// withGuests adds a template with agents as guests, and returns the identities of their run.
func (r *rig) withGuests(t *testing.T) *trust.Authority {
	t.Helper()
	kernel := testreq.KernelPackage(t)
	wanted.Store(true)
	program, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := image.Build(image.Source{Package: kernel, Agent: program}, dir); err != nil {
		t.Fatal(err)
	}
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.config.Templates[guestTemplate] = dir
	return authority
}

func greet(ctx context.Context, conn net.Conn) (string, error) {
	c := client.New(conn, client.Options{})
	hello, err := c.Hello(ctx)
	if err != nil {
		return "", err
	}
	// The contract gives its second VM one socket with two cores. Without a topology libvirt makes two sockets of two CPUs.
	if want := (wire.CPUs{Sockets: 1, Cores: 2, Threads: 1}); strings.HasSuffix(hello.VM, "-0002") && (hello.CPUs == nil || *hello.CPUs != want) {
		return "", fmt.Errorf("the guest of VM %s sees its CPUs as %+v, want %+v", hello.VM, hello.CPUs, want)
	}
	return hello.Boot, nil
}

// rig is a lab with a target on it.
type rig struct {
	*lab.Lab
	config target.Config
}

const blankTemplate = "blank"

// newRig makes a lab of two hosts that share a pool, with a template that boots nothing.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, lab.Options{})
}

func newRigOf(t *testing.T, o lab.Options) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	testreq.Program(t, "qemu-img")
	testreq.Program(t, "qemu-io")
	r := &rig{Lab: labtest.New(t, o)}
	command(t, "qemu-img", "create", "-q", "-f", "qcow2", filepath.Join(r.PoolDir(), "blank.qcow2"), "1M")
	c, list := target.ParseConfig("target.yml", []byte(r.TargetFiles()[0].Text), []target.Provider{Provider()})
	if len(list) > 0 {
		t.Fatal(list)
	}
	// Firmware that finds nothing to boot is as good under TCG, and the probe has a test of its own.
	c.Options["accelerator"] = "tcg"
	c.Templates = map[string]string{blankTemplate: "blank.qcow2"}
	r.config = c
	return r
}

// open opens the lab as a target whose calls go through run; nil is virsh itself. Without an authority it is one that
// cannot reach agents.
func (r *rig) open(t *testing.T, dir string, run virsh.Runner, authority *trust.Authority) target.Target {
	t.Helper()
	if run == nil {
		run = virsh.Run
	}
	l, err := open(t.Context(), r.config, target.OpenOptions{Dir: dir, Authority: authority}, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

func (r *rig) virsh(t testing.TB, host int, args ...string) string {
	t.Helper()
	return command(t, "virsh", append([]string{"-q", "-c", r.Hosts[host].URI()}, args...)...)
}

// leftovers lists domains of all hosts and files of the pool, but for templates, and what the controller remembers.
func (r *rig) leftovers(t testing.TB, dir string) []string {
	t.Helper()
	var left []string
	for i := range r.Hosts {
		for name := range strings.FieldsSeq(r.virsh(t, i, "list", "--all", "--name")) {
			left = append(left, r.Hosts[i].Name+" "+name)
		}
	}
	for _, d := range []string{r.PoolDir(), dir} {
		entries, err := os.ReadDir(d)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(slices.Collect(maps.Values(r.config.Templates)), e.Name()) {
				left = append(left, e.Name())
			}
		}
	}
	return left
}

// top returns the file that a disk of a VM writes to now, and its format.
func (r *rig) top(t testing.TB, vm target.VM, d target.Disk) (path, format string) {
	t.Helper()
	for i := range r.Hosts {
		out, err := exec.Command("virsh", "-q", "-c", r.Hosts[i].URI(), "dumpxml", vm.ID).Output()
		if err != nil {
			continue
		}
		seen, err := domain.Parse(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range (presence{nil, seen[0]}).layers() {
			if "/dev/"+l.device == d.Device {
				return filepath.Join(r.PoolDir(), l.volume), l.format
			}
		}
	}
	t.Fatalf("vm %q has no disk %s", vm.Name, d.Device)
	return "", ""
}

func (r *rig) writeDisk(t *testing.T, vm target.VM, d target.Disk, offset int64, data []byte) {
	t.Helper()
	path, format := r.top(t, vm, d)
	pattern := filepath.Join(t.TempDir(), "pattern")
	if err := os.WriteFile(pattern, data, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "qemu-io", "-f", format, "-c", fmt.Sprintf("write -s %s %d %d", pattern, offset, len(data)), path)
}

func (r *rig) readDisk(t *testing.T, vm target.VM, d target.Disk, offset int64, length int) []byte {
	t.Helper()
	const block = 4096
	path, format := r.top(t, vm, d)
	out := filepath.Join(t.TempDir(), "out")
	command(t, "qemu-img", "dd", "-U", "-f", format, "-O", "raw", "bs="+strconv.Itoa(block),
		"skip="+strconv.FormatInt(offset/block, 10), "count="+strconv.FormatInt(offset/block+int64(length/block), 10), "if="+path, "of="+out)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != length {
		t.Fatalf("read %d bytes of %s at %d, want %d", len(data), path, offset, length)
	}
	return bytes.Clone(data)
}

// dirs remembers the folder of each target.
type dirs struct {
	mu  sync.Mutex
	all map[target.Target]string
}

func (d *dirs) set(l target.Target, dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[l] = dir
}

func (d *dirs) of(l target.Target) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[l]
}
