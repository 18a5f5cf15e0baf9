// Package prometheus reads Prometheus exporters as sources: any exporter, and presets for Ceph, node_exporter and windows_exporter.
//
//	exporter ──GET──▶ text ──keep, rename──▶ samples
//
// A preset is a list of the metrics that are recorded; package evaluate/counted says how reports draw them. Labels are mapped to nodes and
// VMs by package collect.
package prometheus

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/target"
)

// Kinds lists the kinds of this package.
func Kinds() []collect.Kind {
	return []collect.Kind{
		{Name: target.SourcePrometheus, Summary: "any Prometheus exporter", Interval: 5 * time.Second, Open: open(nil)},
		// ceph-mgr refreshes its values every 15 seconds by default (mgr/prometheus/scrape_interval).
		{Name: target.SourceCeph, Summary: "Ceph: the prometheus module of ceph-mgr, or ceph-exporter", Interval: 15 * time.Second, Open: open(cephMetrics)},
		{Name: target.SourceNode, Summary: "Linux and macOS hosts with node_exporter", Interval: 5 * time.Second, Open: open(nodeMetrics)},
		{Name: target.SourceWindows, Summary: "Windows hosts with windows_exporter", Interval: 5 * time.Second, Open: open(windowsMetrics)},
	}
}

var cephMetrics = []string{
	"ceph_health_status", "ceph_health_detail", "ceph_osd_up", "ceph_osd_in", "ceph_osd_op", "ceph_osd_op_r*", "ceph_osd_op_w*", "ceph_osd_op_in_bytes",
	"ceph_osd_op_out_bytes", "ceph_osd_op_latency_*", "ceph_osd_apply_latency_ms", "ceph_osd_commit_latency_ms", "ceph_osd_recovery_ops", "ceph_osd_recovery_bytes",
	"ceph_osd_metadata", "ceph_osd_stat_bytes*", "ceph_pool_metadata", "ceph_pool_rd*", "ceph_pool_wr*", "ceph_pool_stored", "ceph_pool_recovering_*",
	"ceph_pg_*", "ceph_cluster_total_*", "ceph_bluestore_*latency_*", "ceph_rbd_*",
}

var nodeMetrics = []string{
	"node_disk_*", "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", "node_memory_free_bytes",
	"node_memory_total_bytes", "node_network_receive_bytes_total", "node_network_transmit_bytes_total", "node_boot_time_seconds", "node_load1",
	"node_uname_info", "node_zfs_*", "node_mdstat_*", "node_filesystem_avail_bytes", "node_filesystem_size_bytes",
}

var windowsMetrics = []string{
	"windows_logical_disk_*", "windows_physical_disk_*", "windows_cpu_time_total", "windows_memory_available_bytes", "windows_memory_physical_total_bytes",
	"windows_memory_physical_free_bytes", "windows_net_bytes_received_total", "windows_net_bytes_sent_total", "windows_hyperv_*", "windows_os_info",
	"windows_system_boot_time_timestamp*",
}

// exporter is one address where an exporter answers.
type exporter struct {
	name   string // of the source
	client *collect.Client
	keep   func(name string) bool
	rename map[string]string
	params url.Values
}

func open(preset []string) func(context.Context, collect.Options) (collect.Collector, error) {
	return func(_ context.Context, o collect.Options) (collect.Collector, error) {
		client, err := collect.NewClient(o, "exporter", "")
		if err != nil {
			return nil, err
		}
		return &exporter{name: o.Source.Name, client: client, keep: keepOf(o, preset), rename: o.Source.Rename, params: o.Source.Params}, nil
	}
}

// keepOf selects metrics: those of the target file, else of the preset, else all except those about the exporter's own process; always those
// that queries of the scenario name.
func keepOf(o collect.Options, preset []string) func(string) bool {
	patterns := o.Source.Keep
	if len(patterns) == 0 {
		patterns = preset
	}
	renamed := maps.Clone(o.Source.Rename)
	return func(name string) bool {
		to, moved := renamed[name]
		switch {
		case o.Wanted != nil && (o.Wanted(name) || moved && o.Wanted(to)):
			return true
		case len(patterns) > 0:
			return collect.Matches(patterns, name)
		}
		return !collect.Matches([]string{"go_*", "process_*", "promhttp_*", "python_gc_*", "python_info"}, name)
	}
}

// Collect implements collect.Collector. Samples have times only if the exporter gives them.
func (e *exporter) Collect(ctx context.Context) (collect.Reading, error) {
	answer, err := e.client.Do(ctx, collect.Call{Query: e.params, Header: map[string]string{"Accept": metric.AcceptText}})
	if err != nil {
		return collect.Reading{}, err
	}
	samples, err := metric.ParseExposition(answer.Body, answer.Header.Get("Content-Type"), e.keep)
	if err != nil {
		wrong := &diag.Error{
			Code: "source-format", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("source %q: the answer is not in the text format of Prometheus: %s", e.name, e.client.Mask(err.Error())),
		}
		if strings.Contains(answer.Header.Get("Content-Type"), "html") {
			wrong.Message, wrong.Hint = fmt.Sprintf("source %q: the answer is a web page", e.name), "the url needs the path of the metrics, such as /metrics"
		}
		return collect.Reading{}, wrong
	}
	r := collect.Reading{Clock: answer.Clock}
	for _, s := range samples {
		if to := e.rename[s.Name]; to != "" {
			s.Name = to
		}
		for label, value := range s.Labels {
			s.Labels[label] = e.client.Hide(value)
		}
		one := collect.Sample{Name: s.Name, Labels: s.Labels, Value: s.Value}
		if s.AtNanos > 0 {
			one.At = time.Unix(0, s.AtNanos)
		}
		r.Samples = append(r.Samples, one)
	}
	return r, nil
}

// Close implements collect.Collector.
func (e *exporter) Close() error {
	e.client.Close()
	return nil
}
