package counted_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/evaluate/counted"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// TestQueriesParse: every chart of every kind is valid PromQL.
func TestQueriesParse(t *testing.T) {
	m := &result.Manifest{Run: "r"}
	for _, kind := range target.SourceKinds() {
		m.Target.Sources = append(m.Target.Sources, result.SourceInfo{Name: kind + "-1", Kind: kind, IntervalNanos: 5e9})
	}
	charts := counted.Charts(m, nil)
	for _, c := range charts {
		if err := metric.CheckQuery(c.Query, ""); err != nil {
			t.Errorf("%s of %s: %v in %s", c.Title, c.Source.Kind, err, c.Query)
		}
		if !strings.Contains(c.Query, fmt.Sprintf("source=%q", c.Source.Name)) {
			t.Errorf("%s of %s does not select its source: %s", c.Title, c.Source.Kind, c.Query)
		}
	}
	if len(charts) < 20 {
		t.Errorf("%d charts", len(charts))
	}
}

// series answers the charts of a source whose samples are those of sample at each second, read every interval.
func series(t *testing.T, s result.SourceInfo, sample func(second int) []result.Sample) map[string]map[string]float64 {
	t.Helper()
	m := result.Manifest{Run: "r", Created: time.Unix(1_700_000_000, 0)}
	m.Target.Sources = []result.SourceInfo{s}
	store, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), m)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for second := 0; second <= 120; second += int(s.IntervalNanos / 1e9) {
		samples := sample(second)
		for i := range samples {
			samples[i].AtNanos = int64(second) * 1e9
			samples[i].Labels["source"] = s.Name
		}
		if err := store.AppendSamples(samples); err != nil {
			t.Fatal(err)
		}
	}
	answers := map[string]map[string]float64{}
	for _, c := range counted.Charts(&m, nil) {
		list, err := store.Range(t.Context(), c.Query, metric.Window{FromNanos: 60e9, ToNanos: 120e9, Step: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			if answers[c.Title] == nil {
				answers[c.Title] = map[string]float64{}
			}
			if slices.ContainsFunc(one.Points, func(p result.Point) bool { return math.IsNaN(p.Value) }) {
				t.Errorf("%s of %s has gaps", c.Title, s.Kind)
			}
			answers[c.Title][one.Name()] = one.Points[30].Value
		}
	}
	return answers
}

func want(t *testing.T, answers map[string]map[string]float64, title, name string, value float64) {
	t.Helper()
	got, ok := answers[title][name]
	if ok == math.IsNaN(value) || ok && math.Abs(got-value) > 1e-6*math.Max(1, math.Abs(value)) {
		t.Errorf("%s, %s: got %v, want %v", title, name, answers[title], value)
	}
}

// TestCounters: charts of counters are rates and means by direction over all objects, without devices that consist of others, and without latency
// for few operations.
func TestCounters(t *testing.T) {
	answers := series(t, result.SourceInfo{Name: "host", Kind: target.SourceNode, IntervalNanos: 5e9}, func(second int) []result.Sample {
		of := func(name, device string, perSecond float64) result.Sample {
			return result.Sample{Name: "node_disk_" + name, Labels: map[string]string{"device": device}, Value: perSecond * float64(second)}
		}
		return []result.Sample{
			of("reads_completed_total", "sda", 100), of("reads_completed_total", "sdb", 50), of("reads_completed_total", "dm-0", 150),
			of("reads_completed_total", "loop3", 150), of("reads_completed_total", "nvme0c1n1", 20), of("reads_completed_total", "mdisk", 0),
			of("read_time_seconds_total", "sda", 0.1), of("read_time_seconds_total", "sdb", 0.2), of("read_bytes_total", "sda", 4096),
			of("writes_completed_total", "sda", 0.2), of("write_time_seconds_total", "sda", 1),
		}
	})
	want(t, answers, "operations", "read", 150)
	want(t, answers, "operations", "write", 0.2)
	want(t, answers, "throughput", "read", 4096)
	want(t, answers, "latency", "read", 2e6)
	want(t, answers, "latency", "write", math.NaN())
}

// TestCephPools: where ceph-mgr has no counters of OSDs, those of pools are drawn; where it has both, OSDs are.
func TestCephPools(t *testing.T) {
	source := result.SourceInfo{Name: "ceph", Kind: target.SourceCeph, IntervalNanos: 15e9}
	of := func(name, label string, perSecond float64, second int) result.Sample {
		return result.Sample{Name: name, Labels: map[string]string{label: "1"}, Value: perSecond * float64(second)}
	}
	answers := series(t, source, func(second int) []result.Sample {
		return []result.Sample{of("ceph_pool_rd", "pool_id", 70, second), of("ceph_pool_wr", "pool_id", 30, second), of("ceph_pool_wr_bytes", "pool_id", 4096, second)}
	})
	want(t, answers, "operations", "read", 70)
	want(t, answers, "operations", "write", 30)
	want(t, answers, "throughput", "write", 4096)
	want(t, answers, "latency", "read", math.NaN())
	answers = series(t, source, func(second int) []result.Sample {
		return []result.Sample{of("ceph_pool_rd", "pool_id", 70, second), of("ceph_osd_op_r", "ceph_daemon", 90, second), of("ceph_pool_wr", "pool_id", 30, second)}
	})
	want(t, answers, "operations", "read", 90)
}

// TestRates: latencies over several objects are weighted by operations, and an object without a latency has no weight.
func TestRates(t *testing.T) {
	answers := series(t, result.SourceInfo{Name: "vc", Kind: target.SourceVSphere, IntervalNanos: 20e9}, func(int) []result.Sample {
		of := func(name, object, named string, value float64) result.Sample {
			return result.Sample{Name: name, Labels: map[string]string{"object": object, "name": named, "direction": "read"}, Value: value}
		}
		return []result.Sample{
			of(collect.OperationsRate, "datastore", "a", 100), of(collect.Latency, "datastore", "a", 0.001),
			of(collect.OperationsRate, "datastore", "b", 300), of(collect.Latency, "datastore", "b", 0.005),
			of(collect.OperationsRate, "datastore", "c", 0.1), of(collect.BytesRate, "datastore", "a", 5000), of(collect.OperationsRate, "disk", "scsi0:1", 7),
			{Name: collect.CPUUsage, Labels: map[string]string{"object": "host", "name": "h"}, Value: 0.25},
		}
	})
	want(t, answers, "operations", "read", 400.1)
	want(t, answers, "throughput", "read", 5000)
	want(t, answers, "latency", "read", 4e6)
	want(t, answers, "CPU", "h", 25)
	want(t, answers, "virtual disks: operations", "read", 7)
}

// TestOwnCharts: charts of the target file see the samples of their source only, and one with a query that is not PromQL is left out.
func TestOwnCharts(t *testing.T) {
	source := result.SourceInfo{Name: "array", Kind: target.SourcePrometheus, IntervalNanos: 10e9, Charts: []result.SourceChart{
		{Title: "reads", Query: "sum by (pool) (rate(reads_total[$__rate_interval]))", Unit: "IOPS"}, {Title: "depth", Query: "max(depth)"}, {Title: "broken", Query: "sum("},
		{Title: "of others", Query: `depth{source="other"}`},
	}}
	answers := series(t, source, func(second int) []result.Sample {
		return []result.Sample{
			{Name: "reads_total", Labels: map[string]string{"pool": "a"}, Value: 30 * float64(second)}, {Name: "reads_total", Labels: map[string]string{"pool": "b"}, Value: 5},
			{Name: "depth", Labels: map[string]string{"pool": "a"}, Value: 12},
		}
	})
	want(t, answers, "reads", "a", 30)
	want(t, answers, "reads", "b", 0)
	want(t, answers, "depth", "all", 12)
	if len(answers) != 2 {
		t.Errorf("got %v", answers)
	}
}

func TestDescribe(t *testing.T) {
	r := counted.Record{}
	source := result.SourceInfo{Name: "vc", Kind: "vsphere", IntervalNanos: 20e9, TLS: "unverified"}
	if got, want := r.Describe(source), "Counters of source vc (vsphere), read every 20 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, up := range []float64{1, 0, 1} {
		r.Add(&result.Sample{Name: collect.Up, Labels: map[string]string{"source": "vc"}, Value: up})
		r.Add(&result.Sample{Name: collect.Age, Labels: map[string]string{"source": "vc"}, Value: 12 + 10.2*float64(i)})
	}
	if got, want := r.Describe(source), "Counters of source vc (vsphere), read every 20 s; values were 12 s to 32 s old when read; 1 of 3 readings failed; TLS unverified"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 5 {
		r.Add(&result.Sample{Name: "x", Labels: map[string]string{"source": "vc"}, AtNanos: int64(i) * 60e9})
		r.Add(&result.Sample{Name: "x", Labels: map[string]string{"source": "vc", "name": "other"}, AtNanos: int64(i) * 60e9})
		r.Add(&result.Sample{Name: "rare", Labels: map[string]string{"source": "vc"}, AtNanos: int64(i) * 600e9})
	}
	if got, want := r.Describe(source), "; it has new values every 1 m; values were"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSimulatedSource: charts of a platform that makes up its counters say so.
func TestSimulatedSource(t *testing.T) {
	m := &result.Manifest{Run: "r"}
	m.Target.Sources = []result.SourceInfo{{Name: "vc", Kind: target.SourceVSphere, Simulated: true}, {Name: "host", Kind: target.SourceNode}}
	for _, c := range counted.Charts(m, nil) {
		if e := c.Result(nil, result.Window{}); e.Simulated != (c.Source.Name == "vc") {
			t.Errorf("%s is simulated: %v", e.Name, e.Simulated)
		}
	}
}

// TestFewOperations: an interval with few operations has no latency, not that of an interval before it.
func TestFewOperations(t *testing.T) {
	source := result.SourceInfo{Name: "filer", Kind: target.SourceNetApp, IntervalNanos: 10e9}
	of := func(second int) []result.Sample {
		labels := func() map[string]string {
			return map[string]string{"object": "volume", "name": "v", "direction": "read"}
		}
		list := []result.Sample{{Name: collect.OperationsRate, Labels: labels(), Value: 0.1}}
		if second <= 70 {
			list = append(list, result.Sample{Name: collect.Latency, Labels: labels(), Value: 0.001})
		}
		return list
	}
	m := result.Manifest{Run: "r", Created: time.Unix(1_700_000_000, 0)}
	m.Target.Sources = []result.SourceInfo{source}
	store, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), m)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for second := 0; second <= 120; second += 10 {
		samples := of(second)
		for i := range samples {
			samples[i].AtNanos, samples[i].Labels["source"] = int64(second)*1e9, source.Name
		}
		if err := store.AppendSamples(samples); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range counted.Charts(&m, nil) {
		if c.Title != "latency" {
			continue
		}
		for second, want := range map[int64]int{60: 1, 79: 1, 86: 0, 94: 0} {
			if answer, err := store.Instant(t.Context(), c.Query, second*1e9); err != nil || len(answer) != want {
				t.Errorf("at %d s: %d series, %v, want %d", second, len(answer), err, want)
			}
		}
	}
}

// TestCategorized: figures that Prism derives are drawn of VMs alone, working sets of one window, and drains by tier.
func TestCategorized(t *testing.T) {
	one := func(name string, value float64, labels ...string) result.Sample {
		s := result.Sample{Name: name, Value: value, Labels: map[string]string{"object": "vm"}}
		for i := 0; i < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		return s
	}
	got := series(t, result.SourceInfo{Name: "prism", Kind: target.SourceNutanix, IntervalNanos: 30e9}, func(int) []result.Sample {
		return []result.Sample{
			one(collect.RandomShare, 0.25, "name", "a"), one(collect.RandomShare, 0.75, "name", "b"), one(collect.RandomShare, 1, "object", "disk"),
			one(collect.WorkingSet, 100, "window", "120s", "direction", "union", "name", "a"), one(collect.WorkingSet, 11, "window", "120s", "direction", "union", "name", "b"),
			one(collect.WorkingSet, 70, "window", "120s", "direction", "read"), one(collect.WorkingSet, 5000, "window", "3600s", "direction", "union"),
			one(collect.TierBytes, 3, "tier", "ssd", "direction", "drain", "name", "a"), one(collect.TierBytes, 4, "tier", "ssd", "direction", "drain", "name", "b"),
			one(collect.TierBytes, 9, "tier", "ssd", "direction", "read"),
		}
	})
	for chart, want := range map[string]map[string]float64{
		"random operations": {"all": 50}, "working set": {"union": 111, "read": 70}, "oplog drain": {"ssd": 7},
	} {
		if fmt.Sprint(got[chart]) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", chart, got[chart], want)
		}
	}
}
