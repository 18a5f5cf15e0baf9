package meter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// busy is the pod of the recordings: a loop with a limit of 0.2 CPUs, of a kubelet 1.34 with containerd.
var busy = VM{Name: "OLTP-0001", Group: "OLTP", Node: "node-1", Namespace: "bench", Pod: "busy", UID: "2dce35a2-702e-439b-905d-a23bdb11929c", VCPUs: 1}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b)+1e-9 }

// Two answers of a real kubelet, two minutes apart.
func TestRecorded(t *testing.T) {
	t.Parallel()
	c := counts{}
	first, second := parse(recorded(t, "first.txt")), parse(recorded(t, "second.txt"))
	if first.cores != 2 || first.memory != 25276510208 || first.now.UnixMilli() != 1795897290553 || first.diskIO {
		t.Errorf("%v cores, %v bytes, at %v, %v", first.cores, first.memory, first.now.UnixMilli(), first.diskIO)
	}
	for _, s := range c.node("node-1", first, 0) {
		if s.Metric != memoryPercent { // there is no average before the second reading
			t.Errorf("first sample %+v", s)
		}
	}
	for _, s := range c.vms([]VM{busy}, first, 0) {
		if s.Metric != target.VMMemory {
			t.Errorf("first sample %+v", s)
		}
	}
	const ahead = 3 * time.Second
	got := map[string]float64{}
	for _, s := range c.node("node-1", second, ahead) {
		got[s.Metric] = s.Value
		if s.Metric == cpuPercent && s.At.UnixMilli() != 1795897403551-ahead.Milliseconds() {
			t.Errorf("CPU at %v", s.At.UnixMilli())
		}
	}
	for _, s := range c.vms([]VM{busy}, second, ahead) {
		got[string(s.Metric)] = s.Value
		if s.VM != busy.Name || s.Group != busy.Group || s.NodeID != busy.Node || s.Simulated {
			t.Errorf("sample %+v", s)
		}
	}
	want := map[string]float64{
		cpuPercent:                    100 * (36259.162741624 - 36217.930135267) / 124.709 / 2,
		memoryPercent:                 100 * 4784873472.0 / 25276510208,
		netReceived:                   0,
		netSent:                       0,
		string(target.VMCPUUsage):     (26.736590531 - 3.000563792) / 118.772,
		string(target.VMCPUThrottled): (1335.0 - 149) / (1339 - 151),
		string(target.VMMemory):       3026944,
		string(target.VMReceived):     (1466.0 - 836) / 124.684,
		string(target.VMTransmitted):  0,
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || value != 0 && !near(v, value) {
			t.Errorf("%s is %v, want %v", name, v, value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more samples: %v", got)
	}
	if again := append(c.vms([]VM{busy}, second, 0), c.vms([]VM{{UID: "another"}}, second, 0)...); len(again) > 0 || len(c.node("node-1", second, 0)) > 0 {
		t.Errorf("the same answer gave more samples: %+v", again)
	}
}

// at is a text of one control group at a second of the test's clock.
func at(seconds int, lines ...string) scrape {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %d\n", l, int64(seconds)*1000)
	}
	return parse([]byte(b.String()))
}

func sampled(samples []target.VMSample) map[target.VMMetric]float64 {
	all := map[target.VMMetric]float64{}
	for _, s := range samples {
		all[s.Metric] = s.Value
	}
	return all
}

// A counter that restarts, a pod of the same name, and a node that was silent for long have no average.
func TestRestarts(t *testing.T) {
	t.Parallel()
	c := counts{}
	vm := VM{Name: "a", UID: "1-2", VCPUs: 2}
	cpu := func(uid string, seconds int, used float64) map[target.VMMetric]float64 {
		vm.UID = uid
		line := fmt.Sprintf(`container_cpu_usage_seconds_total{cpu="total",id="/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice"} %v`,
			strings.ReplaceAll(uid, "-", "_"), used)
		return sampled(c.vms([]VM{vm}, at(seconds, line), 0))
	}
	for i, step := range []struct {
		uid     string
		seconds int
		used    float64
		want    float64 // below zero: no sample
	}{
		{"1-2", 10, 5, -1},
		{"1-2", 20, 15, 0.5},
		{"1-2", 20, 15, -1}, // nothing new
		{"1-2", 30, 3, -1},  // the counter restarted
		{"1-2", 40, 13, 0.5},
		{"1-3", 50, 14, -1}, // another pod
		{"1-3", 60, 34, 1},
		{"1-3", 1000, 35, -1}, // after an outage
		{"1-4", 1010, 1, -1},
		{"1-4", 1012, 1, -1}, // the first average is over too short a time
		{"1-4", 1014, 5, 1},
		{"1-4", 1016, 2, -1}, // the counter restarted
		{"1-4", 1018, 6, -1},
		{"1-4", 1020, 10, 1},
	} {
		got, ok := cpu(step.uid, step.seconds, step.used)[target.VMCPUUsage]
		if ok != (step.want >= 0) || ok && !near(got, step.want) {
			t.Errorf("step %d: %v, %v, want %v", i+1, got, ok, step.want)
		}
	}
}

// A container that is throttled is not hidden by its pod, and one that did not run was not throttled.
func TestThrottled(t *testing.T) {
	t.Parallel()
	c := counts{}
	vm := VM{Name: "a", UID: "u", VCPUs: 1}
	read := func(seconds int, pod, podHeld, container, containerHeld float64) map[target.VMMetric]float64 {
		return sampled(c.vms([]VM{vm}, at(seconds,
			fmt.Sprintf(`container_cpu_cfs_periods_total{id="/kubepods/podu"} %v`, pod),
			fmt.Sprintf(`container_cpu_cfs_throttled_periods_total{id="/kubepods/podu"} %v`, podHeld),
			fmt.Sprintf(`container_cpu_cfs_periods_total{id="/kubepods/podu/c",container="agent"} %v`, container),
			fmt.Sprintf(`container_cpu_cfs_throttled_periods_total{id="/kubepods/podu/c",container="agent"} %v`, containerHeld)), 0))
	}
	if got := read(10, 100, 0, 100, 0); len(got) > 0 {
		t.Errorf("first: %v", got)
	}
	if got := read(20, 200, 10, 200, 75); !near(got[target.VMCPUThrottled], 0.75) {
		t.Errorf("got %v", got)
	}
	if got, ok := read(30, 200, 10, 200, 75)[target.VMCPUThrottled]; !ok || got != 0 {
		t.Errorf("idle: %v, %v", got, ok)
	}
}

// Disks: a group without devices did no I/O where the kernel counts it, and a request is counted for the uppermost device alone.
func TestDisks(t *testing.T) {
	t.Parallel()
	c := counts{}
	vms := []VM{{Name: "a", UID: "a", VCPUs: 1}, {Name: "b", UID: "b", VCPUs: 1}}
	read := func(seconds int, lines ...string) map[string]float64 {
		lines = append(lines, `container_cpu_usage_seconds_total{id="/kubepods/poda"} 1`, `container_cpu_usage_seconds_total{id="/kubepods/podb"} 1`)
		all := map[string]float64{}
		for _, s := range c.vms(vms, at(seconds, lines...), 0) {
			all[s.VM+" "+string(s.Metric)] = s.Value
		}
		return all
	}
	written := func(device string, v int) string {
		return fmt.Sprintf(`container_fs_writes_bytes_total{device="%s",id="/kubepods/poda"} %d`, device, v)
	}
	if got := read(10); len(got) > 0 {
		t.Errorf("without counters: %v", got)
	}
	_ = read(20, written("/dev/dm-1", 1000), written("/dev/sda", 1000))
	got := read(30, written("/dev/dm-1", 6000), written("/dev/sda", 6000))
	if got["a "+string(target.VMWritten)] != 500 {
		t.Errorf("got %v", got)
	}
	if v, ok := got["b "+string(target.VMWritten)]; !ok || v != 0 {
		t.Errorf("got %v", got)
	}
	if _, ok := got["a "+string(target.VMReadTime)]; ok {
		t.Errorf("got %v", got)
	}
}

// The traffic of a node is that of its physical interfaces: what passes a bridge or a bond is counted once.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"eth0": true, "enp3s0f1": true, "ens192": true, "ib0": true, "lo": false, "cni0": false, "vethaaa": false, "cali12": false, "bond0": false,
		"eth0.100": false, "br-ex": false, "flannel.1": false, "docker0": false,
	} {
		if physical(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/kubepods/burstable/pod1-2":            "1-2 true",
		"/kubepods/pod1-2/abc":                  "1-2 false",
		"/lab/kubepods/besteffort/pod1":         "1 true",
		"/":                                     " false",
		"/system.slice/containerd.slice":        " false",
		"/kubepods.slice/kubepods-pod1_2.slice": "1-2 true",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-a.scope": "1-2 false",
	} {
		uid, whole := podOf(path)
		if got := fmt.Sprintf("%s %v", uid, whole); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	labels, rest, ok := readLabels(`{a="b",c="d \"e\" \\ {,}",} 7 8`)
	if !ok || rest != " 7 8" || labels["a"] != "b" || labels["c"] != `d "e" \ {,}` {
		t.Errorf("%v, %q, %v", labels, rest, ok)
	}
	for _, text := range []string{`{`, `{a`, `{a=b}`, `{a="b`, `{a='b'}`} {
		if labels, _, ok := readLabels(text); ok {
			t.Errorf("%q is %v", text, labels)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(recorded(f, "first.txt"))
	f.Add([]byte("container_fs_writes_total{device=\"\",id=\"/podx\"} +Inf 1\n"))
	f.Add([]byte("machine_cpu_cores{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := counts{}
		for range 2 {
			s := parse(text)
			for _, one := range append(c.vms([]VM{busy}, s, 0), c.vms([]VM{{UID: "x"}}, s, 0)...) {
				if one.Value < 0 || one.Value != one.Value {
					t.Errorf("%+v", one)
				}
			}
			for _, one := range c.node("n", s, 0) {
				if one.Value < 0 || one.Value != one.Value {
					t.Errorf("%+v", one)
				}
			}
		}
	})
}
