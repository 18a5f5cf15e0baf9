package nutanix_test

import (
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

// TestEmulator reads the emulator of Prism: its cluster, containers, hosts, and the VM of the run that has power, with its disk, while it is busy at times.
func TestEmulator(t *testing.T) {
	e, err := prismemulator.New(prismemulator.Options{Stats: steady{}, Faults: []faults.Rule{{Request: "GET /api/*/*/stats/*/*", Skip: 1, Times: 1, Status: 503}}})
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
	c, err := nutanix.Open(t.Context(), collect.Options{
		User: e.Credentials.User, Secret: e.Credentials.Password, IsVM: func(name string) bool { return name == "OLTP-0001" },
		Source: target.Source{Name: "lab", Kind: target.SourceNutanix, URL: e.URL, Fingerprint: e.Fingerprint, Interval: 30 * time.Second},
	})
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
