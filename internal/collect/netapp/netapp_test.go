package netapp_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/netapp"
	"github.com/braggdev/bragg/internal/collect/netapp/netapptest"
	"github.com/braggdev/bragg/internal/target"
)

func collector(t *testing.T, o collect.Options) collect.Collector {
	t.Helper()
	c, err := netapp.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func reading(t *testing.T, c collect.Collector) collect.Reading {
	t.Helper()
	r, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value is that of a metric of volume or disk name, NaN if it is absent.
func value(t *testing.T, r collect.Reading, metric, name, direction string) float64 {
	t.Helper()
	found := math.NaN()
	for _, s := range r.Samples {
		if s.Name == metric && s.Labels[collect.LabelName] == name && s.Labels[collect.LabelDirection] == direction {
			if !math.IsNaN(found) {
				t.Errorf("%s of %s (%s) is there twice", metric, name, direction)
			}
			found = s.Value
		}
	}
	return found
}

func is(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestEveryMode reads each kind of system twice: totals at once, latencies and shares from the second reading on.
func TestEveryMode(t *testing.T) {
	none := math.NaN()
	for _, mode := range []string{"7-mode", "cluster", "rest", "old rest"} {
		t.Run(mode, func(t *testing.T) {
			f, o := netapptest.Serve(t, mode)
			f.SameTag = true
			c := collector(t, o)
			f.Set(func(f *netapptest.Filer) {
				f.Counters["vol_a"] = map[string]uint64{"read_ops": math.MaxUint32 - 99, "read_latency": 5_000_000, "read_data": 4096, "write_ops": 7, "write_latency": 70}
				f.Counters["vol_b"] = map[string]uint64{"read_ops": 5000, "read_latency": 9_000_000}
				f.Busy, f.Elapsed, f.Zeroed = 100, 1000, map[string]string{"1.0.1": "41", "1.0.2": "done"}
			})
			r := reading(t, c)
			is(t, "total of writes", value(t, r, collect.Operations, "vol_a", "write"), 7)
			is(t, "time of writes", value(t, r, collect.OperationTime, "vol_a", "write"), 70e-6)
			is(t, "latency at first", value(t, r, collect.Latency, "vol_a", "read"), none)
			is(t, "size", value(t, r, collect.Size, "vol_b", ""), 1000)
			is(t, "used", value(t, r, collect.Used, "vol_b", ""), 400)
			is(t, "zeroing", value(t, r, collect.Zeroed, "1.0.1", ""), 0.41)
			is(t, "a disk that was not being zeroed", value(t, r, collect.Zeroed, "1.0.2", ""), none)
			f.Set(func(f *netapptest.Filer) {
				// Reads of vol_a wrap at 32 bits, 9 writes are too few for a latency, and vol_b restarted.
				f.Counters["vol_a"] = map[string]uint64{"read_ops": 100, "read_latency": 5_500_000, "read_data": 8192, "write_ops": 16, "write_latency": 900}
				f.Counters["vol_b"] = map[string]uint64{"read_ops": 40, "read_latency": 4000}
				f.Busy, f.Elapsed, f.Zeroed = 350, 2000, map[string]string{"1.0.1": "done"}
			})
			r = reading(t, c)
			is(t, "total of reads", value(t, r, collect.Operations, "vol_a", "read"), math.MaxUint32+101)
			is(t, "latency of reads", value(t, r, collect.Latency, "vol_a", "read"), 2500e-6)
			is(t, "latency of few writes", value(t, r, collect.Latency, "vol_a", "write"), none)
			is(t, "latency after a restart", value(t, r, collect.Latency, "vol_b", "read"), none)
			is(t, "total after a restart", value(t, r, collect.Operations, "vol_b", "read"), 5040)
			is(t, "ratio of reads and bytes", value(t, r, collect.BytesRate, "vol_a", "read")/value(t, r, collect.OperationsRate, "vol_a", "read"), 4096./200)
			is(t, "zeroed", value(t, r, collect.Zeroed, "1.0.1", ""), 1)
			node := map[string]string{"7-mode": "filer7"}[mode]
			if node == "" {
				node = "node-a"
			}
			is(t, "CPU", value(t, r, collect.CPUUsage, node, ""), 0.25)
			if len(r.Missing) > 0 || len(f.Open) > 0 {
				t.Errorf("missing %v, iterators left open: %v", r.Missing, f.Open)
			}
			wantVia := map[string]string{"7-mode": "perf-object-get-instances-iter-end", "cluster": "volume-get-iter", "old rest": "volume-get-iter", "rest": "/api/storage/volumes"}
			if !slices.Contains(f.Calls, wantVia[mode]) {
				t.Errorf("calls: %v", f.Calls)
			}
		})
	}
}

// TestParts: volumes are selected by the target file, and a part that cannot be read is named.
func TestParts(t *testing.T) {
	f, o := netapptest.Serve(t, "cluster")
	f.NoDisks = true
	f.Set(func(f *netapptest.Filer) { f.Counters["vol_a"]["read_ops"], f.Counters["vol_b"]["read_ops"] = 1, 1 })
	o.Source.Objects = []string{"vol_b*"}
	r := reading(t, collector(t, o))
	is(t, "a volume that is not listed", value(t, r, collect.Operations, "vol_a", "read"), math.NaN())
	is(t, "a volume that is listed", value(t, r, collect.Operations, "vol_b", "read"), 1)
	want := `[disks: source "filer": storage-disk-get-iter: Insufficient privileges: user 'viewer' (errno 13005)]`
	if fmt.Sprint(r.Missing) != want {
		t.Errorf("got %v, want %s", r.Missing, want)
	}
}

// TestRefusals: errors say why, and contain no password.
func TestRefusals(t *testing.T) {
	_, o := netapptest.Serve(t, "7-mode")
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html><body>Welcome</body></html>") }))
	defer page.Close()
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"password":    {func(o *collect.Options) { o.Secret = "wrong-password" }, `source "filer": 401 Unauthorized: 401 for ***`},
		"certificate": {func(o *collect.Options) { o.Source.Fingerprint = "" }, `source "filer": its certificate is not trusted`},
		"other": {func(o *collect.Options) {
			o.Source.URL, o.Source.TLS, o.Source.Fingerprint = page.URL, target.TLSUnverified, ""
		}, "the answer is not that of a NetApp system"},
	} {
		one := o
		c.change(&one)
		_, err := netapp.Open(t.Context(), one)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), one.Secret) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

// TestZeroingWithoutRights: a user who may not read the command line by REST learns of disks that are being zeroed, and nothing is missing while there
// are none.
func TestZeroingWithoutRights(t *testing.T) {
	f, o := netapptest.Serve(t, "rest")
	f.NoDisks = true
	c := collector(t, o)
	if r := reading(t, c); len(r.Missing) > 0 {
		t.Errorf("without zeroing disks: missing %v", r.Missing)
	}
	f.Set(func(f *netapptest.Filer) { f.Zeroed = map[string]string{"1.0.1": "10", "1.0.2": "20", "1.0.3": "done"} })
	r := reading(t, c)
	if len(r.Missing) != 1 || !strings.HasPrefix(r.Missing[0], "disks: 2 are being zeroed, which competes with the load; ") || !strings.Contains(r.Missing[0], "403 Forbidden") {
		t.Errorf("missing %v", r.Missing)
	}
}

// TestPartialAggregation: sums without the part of a node look like restarts. They are left out, and said to be missing.
func TestPartialAggregation(t *testing.T) {
	for _, mode := range []string{"cluster", "rest"} {
		f, o := netapptest.Serve(t, mode)
		c := collector(t, o)
		set := func(reads uint64, partial bool) collect.Reading {
			f.Set(func(f *netapptest.Filer) {
				f.Partial, f.Counters["vol_a"] = partial, map[string]uint64{"read_ops": reads, "read_latency": 100 * reads, "read_data": 4096 * reads}
			})
			return reading(t, c)
		}
		set(10_000, false)
		r := set(3_000, true)
		if len(r.Missing) != 1 || !strings.HasPrefix(r.Missing[0], "counters of some volumes: 2 of them are incomplete") {
			t.Errorf("%s: missing %v", mode, r.Missing)
		}
		is(t, mode+": total while a node is away", value(t, r, collect.Operations, "vol_a", "read"), math.NaN())
		r = set(12_000, false)
		is(t, mode+": total after", value(t, r, collect.Operations, "vol_a", "read"), 12_000)
		is(t, mode+": rate after", value(t, r, collect.OperationsRate, "vol_a", "read"), math.NaN())
	}
}
