package local_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// testRun is in the environment of every process of these tests, and of nothing else.
const testRun = "BRAGG_TEST_LOCAL"

// TestMain is also the program of agents and of controllers that tests kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "__agent":
			os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{
				Generators: map[string]load.Generator{"burn": burner{}, "runaway": runaway{}}, Version: "test",
				Stderr: os.Stderr,
			}))
		case "__controller":
			controller(os.Args[2])
		}
	}
	if err := os.Setenv(testRun, strconv.Itoa(os.Getpid())); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := processes(""); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "tests left processes behind: %q\n", left)
		code = 1
	}
	os.Exit(code)
}

// processes lists the living processes of this test run whose command line holds text, other than this one.
func processes(text string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environment, _ := os.ReadFile(dir + "/environ")
		line, _ := os.ReadFile(dir + "/cmdline")
		ours := bytes.Contains(environment, []byte(testRun+"="+os.Getenv(testRun)+"\x00")) ||
			bytes.HasSuffix(environment, []byte(testRun+"="+os.Getenv(testRun)))
		if ours && filepath.Base(dir) != strconv.Itoa(os.Getpid()) && bytes.Contains(line, []byte(text)) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func config() target.Config {
	return target.Config{Provider: "local", NodeCount: 4, Allow: target.Allow{NodePower: true}}
}

func openAt(t *testing.T, dir string) *local.Target {
	t.Helper()
	return openWith(t, dir, config())
}

// withoutCgroups is a machine that has none, or whose owner keeps us from them.
func withoutCgroups() target.Config {
	c := config()
	c.Options = map[string]string{"cgroups": "off"}
	return c
}

func openWith(t *testing.T, dir string, c target.Config) *local.Target {
	t.Helper()
	l, err := local.Open(t.Context(), c, target.OpenOptions{Dir: dir, Leases: dir})
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

func greet(ctx context.Context, conn net.Conn) (string, error) {
	c := client.New(conn, client.Options{})
	hello, err := c.Hello(ctx)
	return hello.Boot, err
}

func TestContract(t *testing.T) { contract(t, config()) }

func TestContractWithoutCgroups(t *testing.T) { contract(t, withoutCgroups()) }

func contract(t *testing.T, c target.Config) {
	dirs := map[target.Target]string{}
	targettest.Run(t, targettest.Harness{
		Open: func(t *testing.T) target.Target {
			dir := t.TempDir()
			l := openWith(t, dir, c)
			dirs[l] = dir
			return l
		},
		Reopen: func(t *testing.T, before target.Target) target.Target {
			l := openWith(t, dirs[before], c)
			dirs[l] = dirs[before]
			return l
		},
		Greet:     greet,
		WriteDisk: writeDisk,
		ReadDisk:  readDisk,
		Leftovers: func(t *testing.T, before target.Target) []string {
			return leftovers(t, dirs[before])
		},
	})
}

// leftovers lists the files in dir and the processes that work there.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	left := processes(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	return left
}

func writeDisk(t *testing.T, _ target.VM, d target.Disk, offset int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, offset); err != nil {
		t.Fatal(err)
	}
}

func readDisk(t *testing.T, _ target.VM, d target.Disk, offset int64, length int) []byte {
	t.Helper()
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, length)
	if _, err := f.ReadAt(data, offset); err != nil {
		t.Fatal(err)
	}
	return data
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 4000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: this did not happen", what)
}

func specs(n int) []target.VMSpec {
	all := make([]target.VMSpec, n)
	for i := range all {
		all[i] = target.VMSpec{
			Name: fmt.Sprintf("OLTP-%04d", i+1), Group: "OLTP", Ordinal: i, NodeID: fmt.Sprintf("node-%d", i%4+1), VCPUs: 1,
			RAMBytes: 1 << 30, DiskBytes: []int64{1 << 20},
		}
	}
	return all
}

func create(t *testing.T, l *local.Target, tag target.Tag, n int) []target.VM {
	t.Helper()
	vms, err := l.Create(t.Context(), tag, specs(n))
	if err != nil {
		t.Fatal(err)
	}
	return vms
}

func powerOn(t *testing.T, l *local.Target, tag target.Tag, vms []target.VM) {
	t.Helper()
	if err := l.PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
}

// burner is a generator that uses one CPU for as long as it runs.
type burner struct{}

func (burner) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (burner) Prepare(context.Context, load.Workload) (load.Instance, error) { return burner{}, nil }

func (burner) Run(ctx context.Context, _ load.Sink) error {
	for ctx.Err() == nil {
	}
	return nil
}

func (burner) Close() error { return nil }

// runaway is a generator that starts a process which leaves the session of the VM, as some load programs do.
type runaway struct{ burner }

func (runaway) Prepare(context.Context, load.Workload) (load.Instance, error) {
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return burner{}, nil
}

// controller is the body of a process that tests kill: it starts VMs, says so, and waits.
func controller(dir string) {
	l, err := local.Open(context.Background(), config(), target.OpenOptions{Dir: dir})
	if err == nil {
		var vms []target.VM
		vms, err = l.Create(context.Background(), controllerTag(), specs(4))
		if err == nil {
			err = l.PowerOnVMs(context.Background(), controllerTag(), vms)
		}
		if err == nil {
			err = controllerLoad(l, vms)
		}
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// controllerLoad connects two VMs: the first works with a process that ran away, the second idles.
func controllerLoad(l *local.Target, vms []target.VM) error {
	for i, vm := range vms[:2] {
		conn, err := l.DialAgent(context.Background(), vm)
		if err != nil {
			return err
		}
		c := client.New(conn, client.Options{})
		if _, err := c.Hello(context.Background()); err != nil {
			return err
		}
		if i == 0 {
			go func() {
				_ = c.Run(context.Background(), load.Workload{Name: "w", Generator: "runaway"}, load.SinkFunc(nil))
			}()
			for {
				h, err := c.Health(context.Background())
				if err != nil {
					return err
				}
				if len(h.Workloads) > 0 && h.Workloads[0].Prepared {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	return nil
}

func controllerTag() target.Tag {
	return target.Tag{Controller: "controller", Run: "run", Nonce: strings.Repeat("ab", 16)}
}
