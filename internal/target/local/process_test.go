package local_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
	"github.com/braggdev/bragg/internal/target/targettest"
)

func dial(t *testing.T, l *local.Target, vm target.VM) *client.Client {
	t.Helper()
	conn, err := l.DialAgent(t.Context(), vm)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(conn, client.Options{})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Processes end with the thread that started them; the threads of a Go program come and go.
func TestVMsOutliveThreads(t *testing.T) {
	l, tag := openAt(t, t.TempDir()), targettest.NewTag("r")
	vms := create(t, l, tag, 2)
	var all sync.WaitGroup
	for _, vm := range vms {
		all.Go(func() {
			runtime.LockOSThread() // ends its thread with it
			if err := l.PowerOnVMs(t.Context(), tag, []target.VM{vm}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 200 {
		all.Go(func() { runtime.LockOSThread() })
	}
	all.Wait()
	for _, vm := range vms {
		if _, err := dial(t, l, vm).Hello(t.Context()); err != nil {
			t.Errorf("vm %q: %v", vm.Name, err)
		}
	}
}

func TestPowerOffKillsWhatRanAway(t *testing.T) {
	for name, c := range map[string]target.Config{"with cgroups": config(), "without": withoutCgroups()} {
		t.Run(name, func(t *testing.T) { killRunaways(t, openWith(t, t.TempDir(), c)) })
	}
}

func killRunaways(t *testing.T, l *local.Target) {
	tag := targettest.NewTag("r")
	vms := create(t, l, tag, 2)
	powerOn(t, l, tag, vms)
	done := make(chan error, 2)
	for _, vm := range vms {
		c := dial(t, l, vm)
		go func() {
			done <- c.Run(context.Background(), load.Workload{Name: "w", Generator: "runaway"}, load.SinkFunc(nil))
		}()
	}
	waitUntil(t, "two processes run away", func() bool { return len(processes("sleep")) == 2 })
	if err := l.PowerOffVMs(t.Context(), tag, vms[:1]); err != nil {
		t.Fatal(err)
	}
	if left := processes("sleep"); len(left) != 1 {
		t.Errorf("one runaway process should be left, that of the VM that still runs: %q", left)
	}
	if err := l.PowerOffVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	if left := processes("sleep"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	for range vms {
		if err := <-done; err == nil {
			t.Error("a workload survived the power of its VM")
		}
	}
}

func TestStoppedVMCanBePoweredOff(t *testing.T) {
	dir := t.TempDir()
	l, tag := openAt(t, dir), targettest.NewTag("r")
	vms := create(t, l, tag, 1)
	powerOn(t, l, tag, vms)
	if err := syscall.Kill(pidsOf(processes(dir))[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := l.PowerOffVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	if left := processes(dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestCrashedVMIsOffAndTellsWhy(t *testing.T) {
	l, err := local.Open(t.Context(), config(), target.OpenOptions{
		Dir: t.TempDir(), AgentCommand: []string{"/bin/sh", "-c", "echo out of luck >&2; exit 7"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tag := targettest.NewTag("r")
	vms := create(t, l, tag, 1)
	powerOn(t, l, tag, vms)
	waitUntil(t, "the VM ends", func() bool {
		owned, err := l.Owned(t.Context(), tag)
		return err == nil && owned[0].Power == target.PowerOff
	})
	if _, err := l.DialAgent(t.Context(), vms[0]); err == nil || !strings.Contains(err.Error(), "exit status 7") ||
		!strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
	powerOn(t, l, tag, vms) // a crashed VM can be started again
}

func TestMissingProgram(t *testing.T) {
	l, err := local.Open(t.Context(), config(), target.OpenOptions{Dir: t.TempDir(), AgentCommand: []string{"/no/such/program"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tag := targettest.NewTag("r")
	if err := l.PowerOnVMs(t.Context(), tag, create(t, l, tag, 1)); err == nil {
		t.Error("a VM runs without a program")
	}
}

// Secrets of the controller's environment stay with the controller.
func TestEnvironmentOfVMs(t *testing.T) {
	t.Setenv("VCENTER_PASSWORD", "hunter2")
	t.Setenv("GOMAXPROCS", "64")
	dir := t.TempDir()
	l, tag := openAt(t, dir), targettest.NewTag("r")
	powerOn(t, l, tag, create(t, l, tag, 1))
	pid := strings.Fields(processes(dir)[0])[0]
	environment, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environment), "hunter2") || strings.Contains(string(environment), tag.Nonce) {
		t.Error("a VM was given a secret")
	}
	if runtime.NumCPU() > 1 && !strings.Contains(string(environment), "GOMAXPROCS=1\x00") {
		t.Error("a VM with one CPU may use more")
	}
}

func TestMetricsOnTheVMsOwnAddress(t *testing.T) {
	l, tag := openAt(t, t.TempDir()), targettest.NewTag("r")
	vms := create(t, l, tag, 2)
	powerOn(t, l, tag, vms)
	for _, vm := range vms {
		hello, err := dial(t, l, vm).Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		host, _, err := net.SplitHostPort(hello.MetricsAddress)
		if err != nil || host != vm.Addresses[0] || !strings.HasPrefix(host, "127.") {
			t.Errorf("vm %q at %q has metrics at %q", vm.Name, vm.Addresses, hello.MetricsAddress)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + hello.MetricsAddress + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(text), `nodename="`+vm.Name+`"`) {
			t.Errorf("metrics of vm %q: %.200s, %v", vm.Name, text, err)
		}
	}
}

// An exporter of the machine's own on the usual port does not keep VMs from having metrics.
func TestMetricsWhereThePortIsTaken(t *testing.T) {
	l, tag := openAt(t, t.TempDir()), targettest.NewTag("r")
	vms := create(t, l, tag, 1)
	taken, err := net.Listen("tcp4", net.JoinHostPort(vms[0].Addresses[0], "9100"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	powerOn(t, l, tag, vms)
	hello, err := dial(t, l, vms[0]).Hello(t.Context())
	if err != nil || !strings.HasPrefix(hello.MetricsAddress, vms[0].Addresses[0]+":") || strings.HasSuffix(hello.MetricsAddress, ":9100") {
		t.Errorf("metrics are at %q, %v", hello.MetricsAddress, err)
	}
}

func TestAddressesAreUniqueOverRuns(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		l := openAt(t, t.TempDir())
		for _, vm := range create(t, l, targettest.NewTag("r"), 20) {
			ip := net.ParseIP(vm.Addresses[0])
			if seen[vm.Addresses[0]] || ip == nil || !ip.IsLoopback() {
				t.Errorf("address %q", vm.Addresses[0])
			}
			seen[vm.Addresses[0]] = true
		}
	}
	// The same names and owner in two places at once: what is taken is not given again.
	one, two := openAt(t, t.TempDir()), openAt(t, t.TempDir())
	tag := targettest.NewTag("r")
	a, b := create(t, one, tag, 1)[0], create(t, two, tag, 1)[0]
	if a.Addresses[0] == b.Addresses[0] {
		t.Errorf("two VMs have the address %s", a.Addresses[0])
	}
}

func TestMeterCountsTheNodesOwnVMs(t *testing.T) {
	for name, c := range map[string]target.Config{"with cgroups": config(), "without": withoutCgroups()} {
		t.Run(name, func(t *testing.T) { measure(t, openWith(t, t.TempDir(), c)) })
	}
}

func measure(t *testing.T, l *local.Target) {
	tag := targettest.NewTag("r")
	vms := create(t, l, tag, 2) // on node-1 and node-2
	powerOn(t, l, tag, vms)
	c := dial(t, l, vms[1])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, load.Workload{Name: "w", Generator: "burn"}, load.SinkFunc(nil)) }()
	sample := func() map[string]float64 {
		samples, err := l.SampleNodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, s := range samples {
			if !s.Simulated {
				t.Errorf("%+v does not say that it is simulated", s)
			}
			values[s.NodeID+" "+s.Metric] = s.Value
		}
		return values
	}
	waitUntil(t, "node-2 is busy", func() bool {
		v := sample()
		return v["node-2 CpuUsage.Avg.Percent"] > 10 && v["node-2 CpuUsage.Avg.Megahertz"] > 100 &&
			v["node-1 CpuUsage.Avg.Percent"] < 5 && v["node-3 CpuUsage.Avg.Percent"] == 0
	})
	if err := l.MigrateVMs(t.Context(), tag, vms[1:], "node-3"); err != nil {
		t.Fatal(err)
	}
	sample() // what was used before the move still counts for node-2
	waitUntil(t, "node-3 is busy", func() bool {
		v := sample()
		return v["node-3 CpuUsage.Avg.Percent"] > 10 && v["node-2 CpuUsage.Avg.Percent"] == 0
	})
	sample()
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := sample()
	if v["node-3 NetReceived.Avg.KilobytesPerSecond"] <= 0 || v["node-3 NetTransmitted.Avg.KilobytesPerSecond"] <= 0 {
		t.Error("the connection of a VM carries nothing")
	}
	if v["node-3 MemUsage.Avg.Percent"] <= 0 || v["node-4 MemUsage.Avg.Percent"] != 0 {
		t.Errorf("memory is %v", v)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestInventorySaysWhatIsImitated(t *testing.T) {
	l := openAt(t, t.TempDir())
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []target.Capability{target.CapMigrate, target.CapNodePower, target.CapNodeMeter, target.CapReady, target.CapSnapshot} {
		if inventory.Simulates[c] == "" {
			t.Errorf("%s is not said to be simulated", c)
		}
	}
	if inventory.FreeBytes <= 0 || inventory.TotalBytes < inventory.FreeBytes || !inventory.Overcommits || inventory.Simulated {
		t.Errorf("got %+v", inventory)
	}
}

// Looking at the target leaves no trace; everything works on a folder that does not exist yet.
func TestFolderIsMadeWhenItIsNeeded(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "run", "vms")
	l, tag := openAt(t, dir), targettest.NewTag("r")
	if inventory, err := l.Inventory(t.Context()); err != nil || inventory.FreeBytes <= 0 {
		t.Errorf("inventory: %+v, %v", inventory, err)
	}
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 0 {
		t.Errorf("owned: %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, []target.VM{{ID: "x", Name: "x"}}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := l.PowerOnNode(t.Context(), "node-1"); err != nil {
		t.Errorf("power on a node that is on: %v", err)
	}
	if left := leftovers(t, above); len(left) > 0 {
		t.Errorf("made %q for looking at it", left)
	}
	create(t, l, tag, 1)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes   int
		dir     string
		options map[string]string
	}{
		"no directory": {4, "", nil}, "negative": {-1, t.TempDir(), nil}, "too many": {1 << 20, t.TempDir(), nil},
		"no place":       {4, "/proc/self/status/vms", nil},
		"unknown option": {4, t.TempDir(), map[string]string{"cgroup": "off"}},
		"unknown value":  {4, t.TempDir(), map[string]string{"cgroups": "maybe"}},
	} {
		c := config()
		c.NodeCount, c.Options = tt.nodes, tt.options
		if l, err := local.Open(t.Context(), c, target.OpenOptions{Dir: tt.dir}); err == nil {
			_ = l.Close()
			t.Errorf("%s: opened", name)
		}
	}
}
