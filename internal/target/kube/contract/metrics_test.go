package contract_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// sampled reads until all these metrics of VMs were seen, and returns the last value of each: "OLTP-0001 cpu_usage_ratio".
func sampled(t *testing.T, tgt target.Target, tag target.Tag, keys ...string) (vms map[string]target.VMSample, nodes []target.NodeSample) {
	t.Helper()
	vms = map[string]target.VMSample{}
	_, m := target.Meters(tgt)
	if m == nil {
		t.Fatal("the target has no meter of VMs")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		of, list, err := m.SampleVMs(ctx, tag)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, of...)
		for _, s := range list {
			vms[s.VM+" "+string(s.Metric)] = s
		}
		if !slices.ContainsFunc(keys, func(key string) bool { _, ok := vms[key]; return !ok }) {
			return vms, nodes
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("got %v, want %q", vms, keys)
	return nil, nil
}

func factOf(i target.Inventory, name string) string {
	for _, f := range i.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

const metricsFact = "cluster and VM metrics"

const (
	skew = 47 * time.Minute // of the cluster's clocks
	soon = skew / 4         // how long a test may take
)

// Values are those of the kubelets, in the units of the contract.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	s.Ahead = skew
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	powered(t, tgt, tag, 2)
	vms, nodes := sampled(t, tgt, tag, "OLTP-0001 cpu_usage_ratio", "OLTP-0002 network_transmit_bytes_per_second")
	for metric, want := range map[target.VMMetric]float64{
		target.VMCPUUsage: kubetest.PodCPU, target.VMCPUThrottled: kubetest.PodThrottled, target.VMMemory: kubetest.PodMemory,
		target.VMWritten: kubetest.PodWritten, target.VMReads: 0, target.VMReceived: kubetest.PodReceived,
	} {
		one, ok := vms["OLTP-0001 "+string(metric)]
		if !ok || math.Abs(one.Value-want) > 0.05*want || one.NodeID != "node-1" || time.Since(one.At).Abs() > soon {
			t.Errorf("%s: %+v, want %v", metric, one, want)
		}
	}
	for _, n := range nodes {
		want := map[string]float64{
			"CpuUsage.Avg.Percent": 25, "MemUsage.Avg.Percent": 25, "NetReceived.Avg.KilobytesPerSecond": 1e6 / 1024, "NetTransmitted.Avg.KilobytesPerSecond": 1e6 / 1024,
		}[n.Metric]
		if math.Abs(n.Value-want) > 0.05*want || time.Since(n.At).Abs() > soon {
			t.Errorf("%+v, want %v", n, want)
		}
	}
	i, err := tgt.Inventory(t.Context())
	if err != nil || !strings.Contains(factOf(i, metricsFact), "kubelets") {
		t.Errorf("%+v, %v", i.Facts, err)
	}
}

// A node whose kubelet does not answer has no values, and does not keep others from having some.
func TestMetricsOfDeadNode(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t, "node-1", "node-2")
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	powered(t, tgt, tag, 2)
	s.SetNode("node-2", false)
	_, nodes := sampled(t, tgt, tag, "OLTP-0001 cpu_usage_ratio")
	last := nodes[len(nodes)-1]
	if last.NodeID != "node-1" {
		t.Errorf("got %+v", last)
	}
	s.SetNode("node-1", false)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, vms, err := tgt.(target.VMMeter).SampleVMs(ctx, tag)
	if len(vms) > 0 {
		t.Errorf("dead nodes have %+v, %v", vms, err)
	}
}

// Without the right to read kubelets, the metrics API has CPU and memory; without that either there is no meter, and the inventory says why.
func TestMetricsByRights(t *testing.T) {
	t.Parallel()
	usage := func(cpu, memory string) kubetest.Object { return kubetest.Object{"cpu": cpu, "memory": memory} }
	api := func(s *kubetest.Server) {
		now := time.Now().Add(s.Ahead).UTC().Format(time.RFC3339)
		s.Put(kubetest.MetricsNodes, kubetest.Object{"metadata": kubetest.Object{"name": "node-1"}, "timestamp": now, "window": "15s", "usage": usage("2", "4Gi")})
		s.Put(kubetest.MetricsPods, kubetest.Object{
			"metadata": kubetest.Object{"name": "none", "namespace": kubetest.Namespace}, "timestamp": now, "containers": []any{kubetest.Object{"usage": usage("1", "1Gi")}},
		})
		for name := range s.Objects("pods") {
			s.Put(kubetest.MetricsPods, kubetest.Object{
				"metadata": kubetest.Object{"name": name, "namespace": kubetest.Namespace}, "timestamp": now, "window": "15s",
				"containers": []any{kubetest.Object{"name": "agent", "usage": usage("250m", "64Mi")}},
			})
		}
	}
	for name, test := range map[string]struct {
		denied     []string
		api        bool
		nodes, vms bool
		fact       string
	}{
		"no right, no API":      {denied: []string{"get nodes/proxy"}, fact: "none: the user may not get nodes/proxy, and the cluster has no metrics API"},
		"no right to either":    {denied: []string{"get nodes/proxy", "list " + kubetest.MetricsPods}, api: true, fact: "none: the user may neither get nodes/proxy nor list pods.metrics.k8s.io"},
		"metrics API":           {denied: []string{"get nodes/proxy"}, api: true, nodes: true, vms: true, fact: "metrics API: CPU and memory only"},
		"metrics API, no nodes": {denied: []string{"get nodes/proxy", "list " + kubetest.MetricsNodes}, api: true, vms: true, fact: "may not list nodes.metrics.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kubetest.New(t, "node-1", "node-2")
			s.Ahead = skew
			for _, right := range test.denied {
				s.Denied[right] = true
			}
			if test.api {
				api(s)
			}
			tgt := openAs(t, simulated(t, s), authority(t))
			have := target.Capabilities(tgt)
			if slices.Contains(have, target.CapNodeMeter) != test.nodes || slices.Contains(have, target.CapVMMeter) != test.vms {
				t.Errorf("capabilities are %q", have)
			}
			i, err := tgt.Inventory(t.Context())
			if err != nil || !strings.Contains(factOf(i, metricsFact), test.fact) {
				t.Errorf("%q, %v", factOf(i, metricsFact), err)
			}
			nodeMeter, vmMeter := target.Meters(tgt)
			if !test.vms {
				if nodeMeter != nil || vmMeter != nil {
					t.Error("there is a meter")
				}
				if _, err := tgt.(target.NodeMeter).SampleNodes(t.Context()); err == nil {
					t.Error("nodes were read")
				}
				return
			}
			tag := targettest.NewTag("run-1")
			powered(t, tgt, tag, 1)
			api(s)
			vms, nodes := sampled(t, tgt, tag, "OLTP-0001 cpu_usage_ratio", "OLTP-0001 memory_resident_bytes")
			if vms["OLTP-0001 cpu_usage_ratio"].Value != 0.25 || vms["OLTP-0001 memory_resident_bytes"].Value != 64<<20 || len(vms) != 2 || (len(nodes) > 0) != test.nodes {
				t.Errorf("got %v, %v", vms, nodes)
			}
			for _, v := range vms {
				if time.Since(v.At).Abs() > soon {
					t.Errorf("%+v is not of now", v)
				}
			}
			for _, n := range nodes {
				if n.NodeID != "node-1" || n.Value != 25 || time.Since(n.At).Abs() > soon {
					t.Errorf("got %+v", n)
				}
			}
		})
	}
}

// Reading a thousand pods costs one call for each node and reading, and no more lists than before.
func TestMetricsOfThousandPods(t *testing.T) {
	t.Parallel()
	const pods, nodes = 1000, 10
	var names []string
	var list []target.NodeConfig
	for i := range nodes {
		names = append(names, fmt.Sprintf("node-%02d", i+1))
		list = append(list, target.NodeConfig{ID: names[i]})
	}
	s := kubetest.New(t, names...)
	tgt := openAs(t, simulated(t, s), authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs(list, pods))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	before := s.Calls()
	const readings = 20
	seen := map[string]bool{}
	for range readings {
		_, of, err := tgt.(target.VMMeter).SampleVMs(t.Context(), tag)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range of {
			if one.Metric == target.VMMemory {
				seen[one.VM] = true
			}
		}
	}
	if len(seen) != pods {
		t.Errorf("%d VMs were read", len(seen))
	}
	for kind, n := range s.Calls() {
		made := n - before[kind]
		most := 0
		if strings.HasPrefix(kind, "scrape ") {
			most = readings
		} else if kind == "get nodes" {
			most = nodes * readings
		}
		if made > most {
			t.Errorf("%d times %s for %d readings, want at most %d", made, kind, readings, most)
		}
	}
}
