package contract_test

import (
	"context"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/image/container"
	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// course is a counter of the kernel over time.
type course struct {
	at    []time.Time
	value []float64
}

func (c *course) add(v float64) { c.at, c.value = append(c.at, time.Now()), append(c.value, v) }

// between is the growth per second between two times; false: they are outside of the course.
func (c *course) between(from, to time.Time) (float64, bool) {
	read := func(at time.Time) (float64, bool) {
		i, _ := slices.BinarySearchFunc(c.at, at, time.Time.Compare)
		if i == 0 || i == len(c.at) {
			return 0, false
		}
		part := float64(at.Sub(c.at[i-1])) / float64(c.at[i].Sub(c.at[i-1]))
		return c.value[i-1] + part*(c.value[i]-c.value[i-1]), true
	}
	first, ok := read(from)
	last, and := read(to)
	return (last - first) / to.Sub(from).Seconds(), ok && and
}

// groupOf finds the control group of a pod on this machine, with the controller that has the file.
func groupOf(t *testing.T, uid, file string) string {
	t.Helper()
	found := ""
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasSuffix(path, "pod"+uid) {
			if _, err := os.Stat(filepath.Join(path, file)); err == nil {
				found = path
			}
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// cpuOf reads the CPU time of a control group, in seconds.
func cpuOf(t *testing.T, uid string) func() float64 {
	if dir := groupOf(t, uid, "cpuacct.usage"); dir != "" {
		return func() float64 {
			text, _ := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
			nanos, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			return nanos / 1e9
		}
	}
	dir := groupOf(t, uid, "cpu.stat")
	return func() float64 {
		text, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		fields := strings.Fields(string(text))
		if len(fields) < 2 || fields[0] != "usage_usec" {
			t.Fatalf("cpu.stat of pod %s is %q", uid, text)
		}
		micros, _ := strconv.ParseFloat(fields[1], 64)
		return micros / 1e6
	}
}

const (
	comparedLeast = 6 * time.Second  // one average, or several in a row
	meteredMax    = 90 * time.Second // only guards against a kubelet that reads nothing
)

// On a real node, the averages of a VM are those of its control group and of what was sent to it. The namespaced Role alone has no meter, even
// if it names what belongs to the cluster.
func TestMetricsOnNode(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with a node")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	namespace := c.Namespace(t)
	config := onNode(t, c, namespace)
	config.Options["kubeconfig"] = c.Account(t, namespace, "bragg",
		append(roleRules(false), kubelab.Rule{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}})...)
	if without := target.Capabilities(openAs(t, config, nil)); slices.Contains(without, target.CapVMMeter) || slices.Contains(without, target.CapNodeMeter) {
		t.Errorf("a Role of the namespace grants %q", without)
	}
	c.ClusterRules(t, namespace, "bragg", kubelab.Rule{APIGroups: []string{""}, Resources: []string{rights.Kubelets}, Verbs: []string{"get"}})
	config.Options["image"] = "kubelab/busy:1"
	c.LoadImage(t, container.Image{
		Name: config.Options["image"], Links: map[string]string{"/bin/sh": "busybox"},
		Entrypoint: []string{"/bin/busybox", "sh", "-c", "while :; do /bin/busybox dd if=/dev/zero of=/dev/null bs=1M count=500 2>/dev/null; /bin/busybox usleep 200000; done"},
	}, map[string]string{"/bin/busybox": "/bin/busybox"})
	tgt := openAs(t, config, authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	uid := strings.TrimSpace(c.Kubectl(t, "get", "-n", namespace, "pod", vms[0].ID, "-o", "jsonpath={.metadata.uid}"))
	address, err := tgt.(target.Addresser).AddressOf(t.Context(), vms[0])
	if err != nil {
		t.Fatal(err)
	}
	cpu, sent := follow(t, cpuOf(t, uid), address)
	byMetric := map[target.VMMetric][]target.VMSample{}
	nodes := map[string]int{}
	enough := func() bool {
		return lasts(byMetric[target.VMCPUUsage]) && lasts(byMetric[target.VMReceived]) && len(byMetric[target.VMMemory]) > 0 &&
			len(byMetric[target.VMCPUThrottled]) > 0 && len(nodes) == len(ofNodes)
	}
	for began := time.Now(); !enough() && time.Since(began) < meteredMax; time.Sleep(500 * time.Millisecond) {
		of, list, err := tgt.(target.VMMeter).SampleVMs(t.Context(), tag)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			byMetric[s.Metric] = append(byMetric[s.Metric], s)
		}
		for _, s := range of {
			nodes[s.Metric]++
		}
	}
	compare(t, byMetric[target.VMCPUUsage], cpu(), 0.02)
	compare(t, byMetric[target.VMReceived], sent(), 200)
	for _, metric := range []target.VMMetric{target.VMMemory, target.VMCPUThrottled} {
		if len(byMetric[metric]) == 0 {
			t.Errorf("no sample of %s", metric)
		}
	}
	for _, metric := range ofNodes {
		if nodes[metric] == 0 {
			t.Errorf("no sample of %s", metric)
		}
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
}

// follow records the CPU time of a pod and sends it datagrams, until the results are read.
func follow(t *testing.T, cpuSeconds func() float64, address string) (cpu, sent func() *course) {
	t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(address, "9")) // where nothing listens: the interface counts them all the same
	if err != nil {
		t.Fatal(err)
	}
	const every, payload, frame = 50 * time.Millisecond, 1000, 1000 + 8 + 20 + 14 // with headers of UDP, IPv4 and Ethernet
	var used, bytes course
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		defer conn.Close()
		total := 0.0
		for ctx.Err() == nil {
			used.add(cpuSeconds())
			bytes.add(total)
			if _, err := conn.Write(make([]byte, payload)); err == nil {
				total += frame
			}
			time.Sleep(every)
		}
	})
	end := func(c *course) func() *course {
		return func() *course {
			stop()
			work.Wait()
			return c
		}
	}
	t.Cleanup(func() { stop(); work.Wait() })
	return end(&used), end(&bytes)
}

// ofNodes are the metrics of a node that a kubelet has.
var ofNodes = []string{"CpuUsage.Avg.Percent", "MemUsage.Avg.Percent", "NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"}

// lasts reports whether there is enough to compare: two averages, each perhaps of several.
func lasts(samples []target.VMSample) bool {
	return len(samples) > 1 && samples[len(samples)-1].At.Sub(samples[0].At) >= 2*comparedLeast
}

// compare expects the averages after the first to be those of the course between their times. Short ones are compared together: a kubelet
// states the time of a reading some milliseconds late.
func compare(t *testing.T, samples []target.VMSample, c *course, slack float64) {
	t.Helper()
	compared := 0
	for from, grown, i := 0, 0.0, 1; i < len(samples); i++ {
		s := samples[i]
		grown += s.Value * s.At.Sub(samples[i-1].At).Seconds()
		window := s.At.Sub(samples[from].At)
		if window < comparedLeast {
			continue
		}
		value := grown / window.Seconds()
		want, ok := c.between(samples[from].At, s.At)
		from, grown = i, 0
		if !ok {
			continue
		}
		compared++
		t.Logf("%s: %.4g, the kernel has %.4g over %v", s.Metric, value, want, window.Round(time.Millisecond))
		if math.Abs(value-want) > 0.1*want+slack {
			t.Errorf("%s is %v, want %v", s.Metric, value, want)
		}
	}
	if compared == 0 {
		t.Errorf("nothing to compare: %+v", samples)
	}
}
