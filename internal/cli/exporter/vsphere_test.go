package exporter_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/lab/vcsim"
)

// countedEnd is the end of the newest interval of the simulated vCenter.
var countedEnd = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// counted are counters of storage, of which the simulator has none, in the newest interval and in those before it.
func counted(c vcsim.Count) (int64, bool) {
	values := map[string][2]int64{
		"datastore.numberReadAveraged.average": {50, 7}, "datastore.read.average": {800, 7}, "datastore.totalReadLatency.average": {2, 9},
		"datastore.numberWriteAveraged.average": {0, 40}, "datastore.write.average": {0, 160}, "datastore.totalWriteLatency.average": {0, 3},
		"virtualDisk.numberReadAveraged.average": {60, 7}, "virtualDisk.read.average": {900, 7}, "virtualDisk.readLatencyUS.latest": {1700, 9},
		"virtualDisk.numberWriteAveraged.average": {3, 3}, "virtualDisk.write.average": {12, 12}, "virtualDisk.writeLatencyUS.latest": {450, 450},
	}
	of, ok := values[c.Counter]
	if c.End.Equal(countedEnd) {
		return of[0], ok
	}
	return of[1], ok
}

// byHand is what one calculates from those counters, and from the simulator's own of that interval:
//
//	        cpu.usage  cpu.ready  mem.usage  net.received  net.transmitted
//	        1/100 %    ms         1/100 %    KiB/s         KiB/s
//	hosts   2543       –          9389       541           479
//	VMs     413        97         3099       203           275
//
// There is no latency of the writes of datastores: in the newest interval there were none.
const byHand = `
bragg_source_age_seconds{source="vc"} 7
bragg_source_up{source="vc"} 1
bragg_storage_bytes_per_second{direction="read",name="LocalDS_0",node="DC0_C0_H0",object="datastore",source="vc"} 819200
bragg_storage_bytes_per_second{direction="read",name="LocalDS_1",node="DC0_C0_H0",object="datastore",source="vc"} 819200
bragg_storage_bytes_per_second{direction="write",name="LocalDS_0",node="DC0_C0_H0",object="datastore",source="vc"} 0
bragg_storage_bytes_per_second{direction="write",name="LocalDS_1",node="DC0_C0_H0",object="datastore",source="vc"} 0
bragg_storage_bytes_per_second{direction="read",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 921600
bragg_storage_bytes_per_second{direction="write",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 12288
bragg_storage_cpu_ready_ratio{name="DC0_C0_RP0_VM0",node="DC0_C0_H0",object="vm",source="vc",vm="DC0_C0_RP0_VM0"} 0.00485
bragg_storage_cpu_usage_ratio{name="DC0_C0_H0",node="DC0_C0_H0",object="host",source="vc"} 0.2543
bragg_storage_cpu_usage_ratio{name="DC0_C0_RP0_VM0",node="DC0_C0_H0",object="vm",source="vc",vm="DC0_C0_RP0_VM0"} 0.0413
bragg_storage_latency_seconds{direction="read",name="LocalDS_0",node="DC0_C0_H0",object="datastore",source="vc"} 0.002
bragg_storage_latency_seconds{direction="read",name="LocalDS_1",node="DC0_C0_H0",object="datastore",source="vc"} 0.002
bragg_storage_latency_seconds{direction="read",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 0.0017
bragg_storage_latency_seconds{direction="write",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 0.00045
bragg_storage_memory_usage_ratio{name="DC0_C0_H0",node="DC0_C0_H0",object="host",source="vc"} 0.9389
bragg_storage_memory_usage_ratio{name="DC0_C0_RP0_VM0",node="DC0_C0_H0",object="vm",source="vc",vm="DC0_C0_RP0_VM0"} 0.3099
bragg_storage_network_bytes_per_second{direction="receive",name="DC0_C0_H0",node="DC0_C0_H0",object="host",source="vc"} 553984
bragg_storage_network_bytes_per_second{direction="transmit",name="DC0_C0_H0",node="DC0_C0_H0",object="host",source="vc"} 490496
bragg_storage_network_bytes_per_second{direction="receive",name="DC0_C0_RP0_VM0",node="DC0_C0_H0",object="vm",source="vc",vm="DC0_C0_RP0_VM0"} 207872
bragg_storage_network_bytes_per_second{direction="transmit",name="DC0_C0_RP0_VM0",node="DC0_C0_H0",object="vm",source="vc",vm="DC0_C0_RP0_VM0"} 281600
bragg_storage_operations_per_second{direction="read",name="LocalDS_0",node="DC0_C0_H0",object="datastore",source="vc"} 50
bragg_storage_operations_per_second{direction="read",name="LocalDS_1",node="DC0_C0_H0",object="datastore",source="vc"} 50
bragg_storage_operations_per_second{direction="write",name="LocalDS_0",node="DC0_C0_H0",object="datastore",source="vc"} 0
bragg_storage_operations_per_second{direction="write",name="LocalDS_1",node="DC0_C0_H0",object="datastore",source="vc"} 0
bragg_storage_operations_per_second{direction="read",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 60
bragg_storage_operations_per_second{direction="write",name="scsi0:0",node="DC0_C0_H0",object="disk",source="vc",vm="DC0_C0_RP0_VM0"} 3
bragg_storage_size_bytes{name="LocalDS_0",object="datastore",source="vc"} 1.099511627776e+12
bragg_storage_size_bytes{name="LocalDS_1",object="datastore",source="vc"} 1.099511627776e+12
bragg_storage_used_bytes{name="LocalDS_0",object="datastore",source="vc"} 2.147483648e+10
bragg_storage_used_bytes{name="LocalDS_1",object="datastore",source="vc"} 0
`

// TestVSphere: what the command prints of a vCenter has the values that one calculates by hand, and promtool has nothing against it.
func TestVSphere(t *testing.T) {
	s, err := vcsim.Start(vcsim.Options{Dir: t.TempDir(), Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Count(vcsim.Counters{Clock: func() time.Time { return countedEnd.Add(7 * time.Second) }, Value: counted})
	text, err := s.TargetFile(t.TempDir(), "sources: [{name: vc, kind: vsphere}]\n")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "target.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := bragg(t.Context(), &out, &errs, nil, "exporter", "vsphere", "--target", file, "--once"); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	promtool(t, out.String())
	if strings.Contains(out.String()+errs.String(), vcsim.Password) {
		t.Error("the password was printed")
	}
	got := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, collect.Duration) {
			got[line] = true
		}
	}
	for want := range strings.Lines(strings.TrimPrefix(byHand, "\n")) {
		if !got[want] {
			t.Errorf("missing: %s", want)
		}
		delete(got, want)
	}
	for line := range got {
		t.Errorf("not calculated: %s", line)
	}
}
