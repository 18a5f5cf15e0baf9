package session

import (
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// scraped has the samples of one round of scrapes.
type scraped struct {
	mu      sync.Mutex
	samples []result.Sample
}

func (s *scraped) add(list []result.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, list...)
}

// of returns the samples of a metric that have all the labels in want, given as alternating names and values.
func (s *scraped) of(name string, want ...string) []result.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []result.Sample
	for _, sample := range s.samples {
		fits := sample.Name == name
		for i := 0; i+1 < len(want); i += 2 {
			fits = fits && sample.Labels[want[i]] == want[i+1]
		}
		if fits {
			out = append(out, sample)
		}
	}
	return out
}

// nodeExporter starts Debian's node_exporter and returns its port and a function that ends it.
func nodeExporter(t *testing.T) (int, func()) {
	t.Helper()
	program := testreq.Program(t, "prometheus-node-exporter")
	port := testreq.FreePort(t)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cmd := exec.Command(program, "--web.listen-address="+address, "--collector.disable-defaults", "--collector.cpu",
		"--collector.loadavg", "--collector.meminfo", "--collector.diskstats")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return port, end
		}
		if time.Now().After(deadline) {
			t.Fatal("node_exporter does not listen")
		}
	}
}

// NodeExporter is for tests outside of the package.
var NodeExporter = nodeExporter

// TestRealNodeExporters: one exporter on a VM, found by exporter_ports, an agent on that VM, and one exporter on a node,
// found by the target file.
func TestRealNodeExporters(t *testing.T) {
	port, end := nodeExporter(t)
	m := newManyAgents(t, 1, "")
	vm := m.vms[0]
	vm.Addresses = []string{"127.0.0.1"}
	planned := &plan.Plan{Groups: []plan.Group{{Name: vm.Group, ExporterPorts: []int{port}}}}
	nodes := []target.NodeConfig{{ID: "n-7", Name: "seven", Address: "127.0.0.1", ExporterPort: port}, {ID: "n-8", Address: "127.0.0.1"}}
	x := newExporters(planned, nil, nodes, m.record)
	m.observer.exporters = x
	if _, err := m.agents.Runner(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	var got scraped
	x.scraper.Sink = got.add
	x.scraper.Once(t.Context())
	if n := len(got.of("node_cpu_seconds_total", "vm", vm.Name, "vm_group", vm.Group, "mode", "idle")); n == 0 {
		t.Error("nothing of the exporter on the VM was recorded")
	}
	if n := len(got.of("node_memory_MemTotal_bytes", "node", "n-7", "instance", "seven", "job", "bragg-node")); n != 1 {
		t.Errorf("the memory of the node was recorded %d times", n)
	}
	if len(got.of("node_load5")) > 0 {
		t.Error("a metric that is not wanted was recorded")
	}
	// The agent has no port: its metrics arrive over its connection.
	if n := len(got.of("node_boot_time_seconds", "vm", vm.Name, "simulated", "true")); n != 1 {
		t.Errorf("the agent's own metrics were recorded %d times", n)
	}
	if ups := got.of("up"); len(ups) != 3 || slices.ContainsFunc(ups, func(s result.Sample) bool { return s.Value != 1 }) {
		t.Errorf("up is %+v", ups)
	}
	end()
	got = scraped{}
	x.scraper.Once(t.Context())
	if ups := got.of("up", "port", strconv.Itoa(port)); len(ups) != 2 || ups[0].Value != 0 || ups[1].Value != 0 {
		t.Errorf("a dead exporter: up is %+v", ups)
	}
	m.agents.SwitchedOff(vm)
	got = scraped{}
	x.scraper.Once(t.Context())
	if ups := got.of("up", "vm", vm.Name); len(ups) != 2 || ups[0].Value+ups[1].Value != 0 {
		t.Errorf("an agent that is gone: up is %+v", ups)
	}
}

// TestAgentStandsInForNodeExporter: both have the same names. Where node_exporter is expected and nothing answers, the agent does,
// and never both at once.
func TestAgentStandsInForNodeExporter(t *testing.T) {
	m := newManyAgents(t, 1, "")
	vm := m.vms[0]
	vm.Addresses = []string{"127.255.0.9"} // nothing listens on this address
	x := newExporters(&plan.Plan{Groups: []plan.Group{{Name: vm.Group, ExporterPorts: []int{9100}}}}, nil, nil, m.record)
	m.observer.exporters = x
	if _, err := m.agents.Runner(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	var got scraped
	x.scraper.Sink = got.add
	x.scraper.Once(t.Context())
	if n := len(got.of("node_boot_time_seconds", "vm", vm.Name, "simulated", "true")); n != 1 {
		t.Errorf("the agent's own metrics were recorded %d times", n)
	}
	if ups := got.of("up"); len(ups) != 1 || ups[0].Value != 1 {
		t.Errorf("up is %+v", ups)
	}
}
