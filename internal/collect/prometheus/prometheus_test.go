package prometheus_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/prometheus"
	"github.com/braggdev/bragg/internal/target"
)

const secret = "hunter2-token"

// serve is an exporter behind TLS with a certificate of its own, which wants a token.
func serve(t *testing.T, text string) (*httptest.Server, target.Source) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, text)
		for name, values := range r.URL.Query() {
			fmt.Fprintf(w, "ceph_rbd_asked{name=%q,values=%q} 1\n", name, strings.Join(values, "+"))
		}
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return server, target.Source{Name: "ceph", Kind: target.SourceCeph, URL: server.URL + "/metrics", Fingerprint: hex.EncodeToString(sum[:])}
}

func open(t *testing.T, o collect.Options) collect.Collector {
	t.Helper()
	kinds := prometheus.Kinds()
	kind := kinds[slices.IndexFunc(kinds, func(k collect.Kind) bool { return k.Name == o.Source.Kind })]
	c, err := kind.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const exposition = `# TYPE ceph_osd_op_r counter
ceph_osd_op_r{ceph_daemon="osd.0"} 12
ceph_osd_op_r{ceph_daemon="osd.1"} 3 1700000000500
ceph_mon_metadata{ceph_daemon="mon.a"} 1
process_cpu_seconds_total 5
`

func names(r collect.Reading) string {
	var list []string
	for _, s := range r.Samples {
		list = append(list, s.Name)
	}
	return fmt.Sprint(slices.Compact(list))
}

func TestExporter(t *testing.T) {
	_, source := serve(t, exposition)
	r, err := open(t, collect.Options{Source: source, Secret: secret}).Collect(t.Context())
	if err != nil || len(r.Samples) != 2 || r.Clock.IsZero() {
		t.Fatalf("got %+v, %v", r, err)
	}
	if s := r.Samples[1]; s.Value != 3 || s.Labels["ceph_daemon"] != "osd.1" || !s.At.Equal(time.UnixMilli(1700000000500)) || !r.Samples[0].At.IsZero() {
		t.Errorf("got %+v", r.Samples)
	}
	asked := collect.Options{Source: source, Secret: secret}
	asked.Source.Params = url.Values{"match[]": {"a b", "c"}}
	if r, err := open(t, asked).Collect(t.Context()); err != nil || len(r.Samples) != 3 || fmt.Sprint(r.Samples[2].Labels) != `map[name:match[] values:a b+c]` {
		t.Errorf("with parameters: got %+v, %v", r.Samples, err)
	}
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"any exporter": {func(o *collect.Options) { o.Source.Kind = target.SourcePrometheus }, "[ceph_osd_op_r ceph_mon_metadata]"},
		"keep":         {func(o *collect.Options) { o.Source.Keep = []string{"process_*"} }, "[process_cpu_seconds_total]"},
		"query":        {func(o *collect.Options) { o.Wanted = func(name string) bool { return name == "ceph_mon_metadata" } }, "[ceph_osd_op_r ceph_mon_metadata]"},
		"rename":       {func(o *collect.Options) { o.Source.Rename = map[string]string{"ceph_osd_op_r": "reads_total"} }, "[reads_total]"},
	} {
		o := collect.Options{Source: source, Secret: secret}
		c.change(&o)
		if r, err := open(t, o).Collect(t.Context()); err != nil || names(r) != c.want {
			t.Errorf("%s: got %s, %v, want %s", what, names(r), err, c.want)
		}
	}
}

// TestRefusals: errors name the source and the reason, and contain no credential.
func TestRefusals(t *testing.T) {
	server, source := serve(t, "no metrics {")
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"token":       {func(o *collect.Options) { o.Secret = "wrong-token" }, `source "ceph": 401 Unauthorized: not with Bearer ***`},
		"certificate": {func(o *collect.Options) { o.Source.Fingerprint = "" }, `source "ceph": its certificate is not trusted`},
		"pin":         {func(o *collect.Options) { o.Source.Fingerprint = strings.Repeat("0", 64) }, "and the target file says 0000"},
		"text":        {func(*collect.Options) {}, `source "ceph": the answer is not in the text format of Prometheus: strconv.ParseFloat`},
		"connection":  {func(o *collect.Options) { o.Source.URL = "https://127.0.0.1:1/metrics" }, `source "ceph": dial tcp 127.0.0.1:1`},
		"path":        {func(o *collect.Options) { o.Source.URL = server.URL + "\x7f" }, "invalid url"},
	} {
		o := collect.Options{Source: source, Secret: secret}
		c.change(&o)
		kinds := prometheus.Kinds()
		collector, err := kinds[1].Open(t.Context(), o)
		if err == nil {
			_, err = collector.Collect(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), o.Secret) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

// TestHostileText: values of every kind are taken, a text that is not valid is refused as a whole, and no label repeats the credential.
func TestHostileText(t *testing.T) {
	_, source := serve(t, "a{l=\"\\\\ \\\" \\n é\"} NaN\na{l=\"token "+secret+"\"} +Inf\na{l=\"x\"} -0\n{\"b.c\",\"l.m\"=\"x\"} 1e300\n")
	source.Kind = target.SourcePrometheus
	r, err := open(t, collect.Options{Source: source, Secret: secret}).Collect(t.Context())
	if err != nil || len(r.Samples) != 4 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if s := r.Samples; s[0].Labels["l"] != "\\ \" \n é" || !math.IsNaN(s[0].Value) || s[1].Labels["l"] != "token ***" || s[3].Name != "b.c" {
		t.Errorf("got %+v", r.Samples)
	}
	for what, text := range map[string]string{
		"not UTF-8": "a{l=\"\xff\"} 1\n", "cut": "a 1\nb{l=\"", "no number": "a 1\nb x\n", "html": "<html>", "many": strings.Repeat("a 1\n", 50_001),
	} {
		_, source := serve(t, text)
		source.Kind = target.SourcePrometheus
		if r, err := open(t, collect.Options{Source: source, Secret: secret}).Collect(t.Context()); err == nil || len(r.Samples) > 0 || len(err.Error()) > 400 {
			t.Errorf("%s: got %d samples, %v", what, len(r.Samples), err)
		}
	}
}

// TestPresets: presets keep what exporters of Windows and macOS call their counters of disks, CPU, memory and network, and what charts draw.
func TestPresets(t *testing.T) {
	for kind, published := range map[string][]string{
		target.SourceWindows: {
			"windows_logical_disk_reads_total", "windows_logical_disk_writes_total", "windows_logical_disk_read_bytes_total", "windows_logical_disk_write_bytes_total",
			"windows_logical_disk_read_latency_seconds_total", "windows_logical_disk_write_latency_seconds_total", "windows_physical_disk_reads_total",
			"windows_cpu_time_total", "windows_memory_available_bytes", "windows_memory_physical_total_bytes", "windows_net_bytes_received_total",
			"windows_net_bytes_sent_total", "windows_hyperv_virtual_storage_device_operations_read_total", "windows_os_info", "windows_system_boot_time_timestamp",
		},
		target.SourceNode: { // on macOS
			"node_disk_reads_completed_total", "node_disk_writes_completed_total", "node_disk_read_bytes_total", "node_disk_written_bytes_total",
			"node_disk_read_time_seconds_total", "node_disk_write_time_seconds_total", "node_disk_read_errors_total", "node_cpu_seconds_total",
			"node_memory_free_bytes", "node_memory_total_bytes", "node_network_receive_bytes_total", "node_network_transmit_bytes_total", "node_boot_time_seconds",
		},
	} {
		var text strings.Builder
		for _, name := range append(slices.Clone(published), "go_goroutines", "windows_service_state", "node_timex_tick_seconds", "process_open_fds") {
			fmt.Fprintf(&text, "%s 1\n", name)
		}
		_, source := serve(t, text.String())
		source.Kind = kind
		r, err := open(t, collect.Options{Source: source, Secret: secret}).Collect(t.Context())
		if got, want := names(r), fmt.Sprint(published); err != nil || got != want {
			t.Errorf("%s: got %s, %v\nwant %s", kind, got, err, want)
		}
	}
}
