package image_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

// patience is for machines that are much slower than ours: an emulated guest boots in five seconds here.
const patience = 5 * time.Minute

// agentBinary is the agent's program, built once for all tests.
var agentBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bragg-agent-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bragg-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X main.version=1.2.3-test", "-o", path, "github.com/braggdev/bragg/cmd/bragg-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, text)
	}
	return path, nil
})

// theImage is made of it and the kernel package, once for all tests.
var theImage = sync.OnceValues(func() (image.Image, error) {
	program, err := agentBinary()
	if err != nil {
		return image.Image{}, err
	}
	dir := filepath.Join(filepath.Dir(program), "image")
	if _, err := image.Build(image.Source{Package: kernelPackage, Agent: program}, dir); err != nil {
		return image.Image{}, err
	}
	return image.Open(dir)
})

var kernelPackage string // set before theImage is called

func TestMain(m *testing.M) {
	code := m.Run()
	if kernelPackage != "" {
		if path, err := agentBinary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// built is an image of the kernel that the machine has for tests.
func built(t *testing.T) image.Image {
	t.Helper()
	kernelPackage = testreq.KernelPackage(t)
	i, err := theImage()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// machine is a guest under QEMU, emulated: KVM may be there and not work.
type machine struct {
	t       *testing.T
	process *exec.Cmd
	console string // path
	monitor string // path
	port    int    // on this machine, of the agent
	ended   chan struct{}
	engines []string // that drove loads
}

// hardware is what a test gives to a guest beside its kernel.
type hardware struct {
	seed      []byte   // nil: none
	disks     []string // paths of raw images, in the order of their SCSI addresses after the seed
	address   string   // that the guest has, which QEMU forwards to; "none": no interface; empty: the one that QEMU lends
	mac       string
	arguments string   // of the kernel, beside the image's
	devices   []string // more arguments of QEMU
}

func start(t *testing.T, i image.Image, h hardware) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, console: filepath.Join(dir, "console"), monitor: filepath.Join(dir, "qmp"), port: testreq.FreePort(t), ended: make(chan struct{})}
	args := []string{
		"-accel", "tcg", "-cpu", "qemu64", "-m", "192", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:" + m.console,
		"-qmp", "unix:" + m.monitor + ",server=on,wait=off", "-kernel", i.Kernel, "-initrd", i.Initramfs,
		"-append", i.CommandLine + " " + h.arguments, "-device", "virtio-scsi-pci,id=scsi",
	}
	disks := h.disks
	if h.seed != nil {
		path := filepath.Join(dir, "seed")
		if err := os.WriteFile(path, h.seed, 0o600); err != nil {
			t.Fatal(err)
		}
		disks = append([]string{path}, disks...)
	}
	for n, path := range disks {
		readOnly := "off"
		if n == 0 && h.seed != nil {
			readOnly = "on"
		}
		args = append(args, "-drive", fmt.Sprintf("if=none,id=d%d,format=raw,file=%s,readonly=%s", n, path, readOnly),
			"-device", fmt.Sprintf("scsi-hd,drive=d%d,bus=scsi.0,scsi-id=%d", n, n))
	}
	if h.address != "none" {
		args = append(args, "-netdev", fmt.Sprintf("user,id=n,hostfwd=tcp:127.0.0.1:%d-%s:7401", m.port, h.address),
			"-device", "virtio-net-pci,netdev=n,romfile=,mac="+cmp.Or(h.mac, "52:54:00:00:00:01"))
	}
	m.process = exec.Command(testreq.Program(t, "qemu-system-x86_64"), append(args, h.devices...)...)
	var said bytes.Buffer
	m.process.Stderr = &said
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		_ = m.process.Wait()
	}()
	t.Cleanup(func() {
		_ = m.process.Process.Kill()
		<-m.ended
		if t.Failed() {
			t.Logf("QEMU said %q; console:\n%s", said.String(), m.read())
		}
	})
	return m
}

func (m *machine) read() string {
	text, _ := os.ReadFile(m.console)
	return string(text)
}

// waitFor waits until the console says something.
func (m *machine) waitFor(text string) {
	m.t.Helper()
	for until := time.Now().Add(patience); !strings.Contains(m.read(), text); time.Sleep(50 * time.Millisecond) {
		select {
		case <-m.ended:
			if !strings.Contains(m.read(), text) {
				m.t.Fatalf("the guest ended without %q", text)
			}
			return
		default:
		}
		if time.Now().After(until) {
			m.t.Fatalf("the console does not say %q", text)
		}
	}
}

// waitForEnd waits until the guest is off.
func (m *machine) waitForEnd() {
	m.t.Helper()
	select {
	case <-m.ended:
	case <-time.After(patience):
		m.t.Fatal("the guest does not power off")
	}
}

// command sends one command to QEMU's monitor.
func (m *machine) command(name string) {
	m.t.Helper()
	conn, err := net.Dial("unix", m.monitor)
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, text := range []string{"", "qmp_capabilities", name} {
		if text != "" {
			if err := json.NewEncoder(conn).Encode(map[string]string{"execute": text}); err != nil {
				m.t.Fatal(err)
			}
		}
		if line, err := r.ReadString('\n'); err != nil || strings.Contains(line, "error") {
			m.t.Fatalf("%s: %v %s", text, err, line)
		}
	}
}

// client speaks to the guest's agent as the controller of its run does.
func (m *machine) client(a *trust.Authority, vm string) *client.Client {
	m.t.Helper()
	settings := a.Controller(vm)
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", fmt.Sprint("127.0.0.1:", m.port))
	}
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		// A connection that is made before the guest has its address hangs: QEMU has accepted it and dropped its packet.
		ctx, cancel := context.WithTimeout(m.t.Context(), 15*time.Second)
		conn, err := dial(ctx)
		cancel()
		if err == nil {
			c := client.New(conn, client.Options{Started: func(_ load.Workload, engine interval.Engine) {
				m.engines = append(m.engines, engine.String()) // loads of tests start one after another
			}})
			m.t.Cleanup(func() { _ = c.Close() })
			return c
		}
		select {
		case <-m.ended:
			m.t.Fatal("the guest ended")
		default:
		}
		if time.Now().After(until) {
			m.t.Fatalf("reach the agent: %v", err)
		}
	}
}

// disk makes an empty raw image.
func disk(t *testing.T, bytes int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(path)
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func seedOf(t *testing.T, a *trust.Authority, g image.Guest) []byte {
	t.Helper()
	var err error
	if g.Identity, err = a.Agent(g.VM); err != nil {
		t.Fatal(err)
	}
	if g.Listen == "" {
		g.Listen = ":7401"
	}
	text, err := image.Seed(g)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func authority(t *testing.T) *trust.Authority {
	t.Helper()
	a, err := trust.New("run-7", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
