package nutanix_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/nutanix"
	prismemulator "github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
	"github.com/braggdev/bragg/internal/target"
)

// steady has the same figures at all times: 500 reads per second of 800 µs, no writes.
type steady struct{}

func (steady) Value(e stats.Entity, metric string, _ time.Time) (float64, bool) {
	switch {
	case metric == "controllerNumReadIops", metric == "controllerNumIops":
		return 500, true
	case strings.HasPrefix(metric, "controllerAvgReadIoLatency"), strings.HasPrefix(metric, "controllerAvgWriteIoLatency"):
		return 800, true
	case metric == "controllerNumWriteIops":
		return 0, true
	case metric == "hypervisorCpuUsagePpm":
		return 125_000, e.Kind == stats.Host
	case metric == "controllerRandomIoPpm":
		return 900_000, true
	case metric == "controllerSeqIoPpm":
		return 100_000, true
	}
	return 0, false
}

// emulator starts an emulator of Prism with a VM of the run and a foreign one.
func emulator(t *testing.T, o prismemulator.Options) (*prismemulator.Emulator, collect.Options) {
	t.Helper()
	e, err := prismemulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	var clusterID string
	e.State.Read(func(d *state.Data) { clusterID = d.Cluster.ID })
	for _, name := range []string{"OLTP-0001", "foreign"} {
		task, _, err := e.State.CreateVM(state.VMSpec{Name: name, Sockets: 1, CoresPerSocket: 1, MemoryBytes: 1 << 30, ClusterID: clusterID, PowerOn: true,
			Disks: []state.DiskSpec{{Bus: "SCSI", Index: 1, SizeBytes: 1 << 20}}})
		if err == nil {
			err = e.State.Await(task)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return e, collect.Options{
		User: e.Credentials.User, Secret: e.Credentials.Password, IsVM: func(name string) bool { return name == "OLTP-0001" },
		Source: target.Source{Name: "lab", Kind: target.SourceNutanix, URL: e.URL, Fingerprint: e.Fingerprint, Interval: 30 * time.Second},
	}
}

// TestElementOfEmulator reads an emulator without API v4 by v2 and v1. It has the figures that v4 has of the same objects.
func TestElementOfEmulator(t *testing.T) {
	e, o := emulator(t, prismemulator.Options{Stats: steady{}})
	e.Front(func(gate http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/v4.") || r.Method == http.MethodOptions {
				http.NotFound(w, r)
				return
			}
			gate.ServeHTTP(w, r)
		})
	})
	r := reading(t, o)
	traffic := []string{"operations_per_second [read] 500", "operations_per_second [write] 0", "latency_seconds [read] 0.0008"}
	same(t, "VM", lines(r, "vm", "OLTP-0001"), slices.Clone(traffic)...)
	same(t, "foreign VM", lines(r, "vm", "foreign"))
	var host, container string
	e.State.Read(func(d *state.Data) { host, container = d.Hosts[0].Name, d.Containers[0].Name })
	same(t, "host", lines(r, "host", host), append(slices.Clone(traffic), "cpu_usage_ratio [] 0.125")...)
	same(t, "container", lines(r, "container", container), slices.Clone(traffic)...)
	for _, s := range r.Samples {
		if s.Labels["object"] == "vm" && (s.Labels["vm"] != "OLTP-0001" || s.Labels["node"] == "") {
			t.Errorf("labels %v", s.Labels)
		}
	}
}

// TestEmulator reads the emulator of Prism: its cluster, containers, hosts, and the VM of the run that has power, with its disk, while it is busy at times.
func TestEmulator(t *testing.T) {
	_, o := emulator(t, prismemulator.Options{Stats: steady{}, Faults: []faults.Rule{{Request: "GET /api/*/*/stats/*/*", Skip: 1, Times: 1, Status: 503}}})
	c, err := nutanix.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Collect(t.Context())
	if err != nil || len(r.Missing) > 0 {
		t.Fatal(err, r.Missing)
	}
	seen := map[string]map[float64]bool{} // metric and kind of object → values
	vms, hosts := map[string]bool{}, map[string]bool{}
	for _, s := range r.Samples {
		key := s.Name + " " + s.Labels[collect.LabelObject] + " " + s.Labels[collect.LabelDirection]
		if seen[key] == nil {
			seen[key] = map[float64]bool{}
		}
		seen[key][s.Value] = true
		switch s.Labels[collect.LabelObject] {
		case "vm":
			vms[s.Labels[collect.LabelVM]+" on "+s.Labels[collect.LabelNode]] = true
		case "host":
			hosts[s.Labels[collect.LabelNode]] = true
		}
		if age := r.Clock.Sub(s.At); s.At.IsZero() || age < 0 || age > 3*time.Minute {
			t.Errorf("%s is from %v", key, s.At)
		}
	}
	for key, want := range map[string]float64{
		collect.OperationsRate + " container read": 500, collect.OperationsRate + " host read": 500, collect.OperationsRate + " vm read": 500,
		collect.OperationsRate + " vm write": 0, collect.Latency + " container read": 0.0008, collect.Latency + " vm read": 0.0008,
		collect.CPUUsage + " host ": 0.125, collect.RandomShare + " vm ": 0.9,
		collect.OperationsRate + " cluster read": 500, collect.OperationsRate + " disk read": 500, collect.OperationsRate + " disk write": 0,
		collect.Latency + " disk read": 0.0008, collect.RandomShare + " disk ": 0.9,
	} {
		if len(seen[key]) != 1 || !seen[key][want] {
			t.Errorf("%s: got %v, want %v", key, seen[key], want)
		}
	}
	if len(seen[collect.Latency+" vm write"]) > 0 || len(vms) != 1 || len(hosts) != 3 {
		t.Errorf("latencies without writes %v, VMs %v, hosts %v", seen[collect.Latency+" vm write"], vms, hosts)
	}
}
