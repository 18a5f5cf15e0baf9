package nutanix_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/nutanix"
	"github.com/braggdev/bragg/internal/target"
)

const secret = "hunter2-of-prism"

type object = map[string]any

// prism answers like Prism Central, or like Prism Element if it has no API v4.
type prism struct {
	central bool
	vms     int // beside "OLTP-0001"

	mu       sync.Mutex
	busy     int // requests to refuse
	requests []string
}

// at are the times of the two samples that it has.
var at = []time.Time{time.Now().Add(-75 * time.Second).Truncate(time.Second), time.Now().Add(-45 * time.Second).Truncate(time.Second)}

// series is a statistic of clustermgmt.
func series(first, second int) []object {
	return []object{{"value": first, "timestamp": at[0]}, {"value": second, "timestamp": at[1]}}
}

func (p *prism) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	user, pass, _ := r.BasicAuth()
	switch key := r.Header.Get("X-ntnx-api-key"); {
	case key != secret && (user != "viewer" || pass != secret):
		http.Error(w, "not with "+pass+key, http.StatusUnauthorized)
		return
	case r.Header.Get("NTNX-Request-Id") == "":
		http.Error(w, "no request id", http.StatusBadRequest)
		return
	case p.busy > 0:
		p.busy--
		http.Error(w, "busy", http.StatusTooManyRequests)
		return
	}
	v := p.element(r)
	if p.central {
		v = p.v4(r)
	}
	if v == nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(v)
}

func (p *prism) element(r *http.Request) any {
	stats := object{"controller_num_read_iops": "400", "controller_num_write_iops": "0", "controller_read_io_bandwidth_kBps": "1600",
		"controller_avg_read_io_latency_usecs": "750", "controller_avg_write_io_latency_usecs": "-1", "hypervisor_cpu_usage_ppm": "250000"}
	switch r.URL.Path {
	case "/PrismGateway/services/rest/v2.0/storage_containers":
		return object{"entities": []object{{"name": "default", "storage_container_uuid": "c1", "stats": stats,
			"usage_stats": object{"storage.usage_bytes": "400", "storage.capacity_bytes": "1000"}}, {"name": "other", "stats": stats}}}
	case "/PrismGateway/services/rest/v2.0/hosts":
		return object{"entities": []object{{"name": "host-a", "uuid": "h1", "stats": stats}}}
	case "/PrismGateway/services/rest/v1/vms":
		return object{"entities": []object{{"vmName": "OLTP-0001", "hostName": "host-a", "stats": stats}, {"vmName": "foreign", "stats": stats}}}
	}
	return nil
}

func (p *prism) v4(r *http.Request) any {
	path := r.URL.Path
	if strings.Contains(path, "/stats/") {
		start, err1 := time.Parse(time.RFC3339, r.URL.Query().Get("$startTime"))
		end, err2 := time.Parse(time.RFC3339, r.URL.Query().Get("$endTime"))
		if err1 != nil || err2 != nil || !start.Before(at[0]) || end.Before(at[1]) || r.URL.Query().Get("$samplingInterval") != "30" || r.URL.Query().Get("$statType") != "AVG" || r.URL.Query().Get("$select") != "*" {
			return object{"data": object{"error": r.URL.RawQuery}}
		}
	}
	switch path {
	case "/api/clustermgmt/unversioned/info", "/api/vmm/unversioned/info":
		return object{"data": "v4.2"}
	case "/api/clustermgmt/v4.2/config/storage-containers":
		return object{"data": []object{{"containerExtId": "c1", "name": "default", "clusterName": "cl"}, {"containerExtId": "c2", "name": "other"}}, "metadata": object{"totalAvailableResults": 2}}
	case "/api/clustermgmt/v4.2/config/clusters":
		central := object{"extId": "pc", "name": "Unnamed", "config": object{"clusterFunction": []string{"PRISM_CENTRAL"}}}
		return object{"data": []object{central, {"extId": "cl1", "name": "cl", "config": object{"clusterFunction": []string{"AOS"}}}}, "metadata": object{"totalAvailableResults": 2}}
	case "/api/clustermgmt/v4.2/config/hosts":
		return object{"data": []object{{"extId": "h1", "hostName": "host-a", "cluster": object{"uuid": "cl1"}}}, "metadata": object{"totalAvailableResults": 1}}
	case "/api/vmm/v4.2/ahv/config/vms":
		return p.page(r)
	case "/api/clustermgmt/v4.2/stats/storage-containers/c1":
		return object{"data": object{"$objectType": "clustermgmt.v4.stats.StorageContainerStats", "extId": "c1", "storageCapacityBytes": series(1000, 1000), "storageUsageBytes": series(300, 400),
			"controllerNumReadIops": series(0, 400), "controllerReadIoBandwidthkBps": series(0, 1600), "controllerAvgReadIoLatencyuSecs": series(0, 750),
			"controllerNumWriteIops": series(0, 0), "controllerAvgWriteIoLatencyuSecs": series(-1, -1)}}
	case "/api/clustermgmt/v4.2/stats/clusters/cl1":
		return object{"data": object{"extId": "cl1", "controllerNumReadIops": series(0, 500), "controllerAvgReadIoLatencyUsecs": series(0, 600), "hypervisorCpuUsagePpm": series(300000, 300000)}}
	case "/api/clustermgmt/v4.2/stats/clusters/cl1/hosts/h1":
		return object{"data": object{"extId": "h1", "hypervisorCpuUsagePpm": series(250000, 500000), "overallMemoryUsagePpm": series(100000, 700000), "aggregateHypervisorMemoryUsagePpm": series(-1, 600000)}}
	case "/api/vmm/v4.2/ahv/stats/vms/vm1":
		return object{"data": object{"extId": "vm1", "stats": []object{
			{"timestamp": at[0].Format("2006-01-02T15:04:05+00:00"), "controllerNumReadIops": 0, "controllerAvgReadIoLatencyMicros": 900, "hypervisorMemoryUsagePpm": 1000000, "memoryUsagePpm": 400000},
			{"timestamp": at[1].Format("2006-01-02T15:04:05+00:00"), "controllerNumReadIops": 300, "controllerAvgReadIoLatencyMicros": 900, "controllerRandomIoPpm": 800000,
				"controllerWss120SecondUnionMb": 2, "controllerReadSourceEstoreSsdLocalBytes": 3000, "controllerTimespanMicros": 60e6, "controllerWriteDestEstoreHddBytes": 0, "hypervisorCpuReadyTimePpm": 1000, "memoryUsagePpm": nil}}}}
	case "/api/vmm/v4.2/ahv/stats/vms/vm1/disks/d1": // of disks it has the sum of operations, and the share of sequential ones
		return object{"data": object{"extId": "d1", "vmExtId": "vm1", "stats": []object{
			{"timestamp": at[0].Format("2006-01-02T15:04:05+00:00"), "controllerNumIops": 0, "controllerNumReadIops": 0, "controllerSeqIoPpm": 0},
			{"timestamp": at[1].Format("2006-01-02T15:04:05+00:00"), "controllerNumIops": 300, "controllerNumReadIops": 250, "controllerSeqIoPpm": 300000, "controllerAvgWriteIoLatencyMicros": 400}}}}
	}
	return nil
}

// page is a page of VMs, the last of which is that of the run.
func (p *prism) page(r *http.Request) any {
	var all []object
	for i := range p.vms {
		all = append(all, object{"extId": fmt.Sprint("foreign", i), "name": fmt.Sprint("foreign", i), "powerState": "ON"})
	}
	all = append(all, object{"extId": "vm0", "name": "OLTP-0000", "powerState": "OFF"}, object{"extId": "vm1", "name": "OLTP-0001", "powerState": "ON", "host": object{"extId": "h1"},
		"disks": []object{{"extId": "d1", "diskAddress": object{"busType": "SCSI", "index": 1}}, {"extId": "unattached"}}})
	page, _ := strconv.Atoi(r.URL.Query().Get("$page"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("$limit"))
	return object{"data": all[min(page*limit, len(all)):min((page+1)*limit, len(all))], "metadata": object{"totalAvailableResults": len(all)}}
}

func serve(t *testing.T, p *prism) collect.Options {
	t.Helper()
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return collect.Options{User: "viewer", Secret: secret, IsVM: func(name string) bool { return strings.HasPrefix(name, "OLTP-") },
		Source: target.Source{Name: "prism", Kind: target.SourceNutanix, URL: server.URL, Fingerprint: hex.EncodeToString(sum[:]), Interval: 30 * time.Second}}
}

func reading(t *testing.T, o collect.Options) collect.Reading {
	t.Helper()
	c, err := nutanix.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines are the samples of an object as text, without names and nodes.
func lines(r collect.Reading, kind, name string) []string {
	var out []string
	for _, s := range r.Samples {
		if s.Labels["object"] != kind || s.Labels["name"] != name {
			continue
		}
		which := ""
		switch {
		case s.At.Equal(at[0].Add(30 * time.Second)): // the end of its interval
			which = " at first"
		case s.At.Equal(at[1].Add(30 * time.Second)):
			which = " at last"
		case !s.At.IsZero():
			which = " at " + s.At.String()
		}
		of := strings.TrimSpace(strings.Join([]string{s.Labels["direction"], s.Labels["window"], s.Labels["tier"]}, " "))
		out = append(out, strings.TrimPrefix(s.Name, "bragg_storage_")+" ["+of+"] "+strconv.FormatFloat(s.Value, 'g', 6, 64)+which)
	}
	slices.Sort(out)
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPrismCentral(t *testing.T) {
	p := &prism{central: true, vms: 150, busy: 1}
	o := serve(t, p)
	o.Source.Objects = []string{"def*"}
	r := reading(t, o)
	same(t, "container", lines(r, "container", "default"),
		"size_bytes [] 1000 at first", "size_bytes [] 1000 at last", "used_bytes [] 300 at first", "used_bytes [] 400 at last",
		"operations_per_second [read] 0 at first", "operations_per_second [read] 400 at last", "operations_per_second [write] 0 at first", "operations_per_second [write] 0 at last",
		"bytes_per_second [read] 0 at first", "bytes_per_second [read] 1.6384e+06 at last", "latency_seconds [read] 0.00075 at last")
	same(t, "host", lines(r, "host", "host-a"), "cpu_usage_ratio [] 0.25 at first", "cpu_usage_ratio [] 0.5 at last", "memory_usage_ratio [] 0.1 at first", "memory_usage_ratio [] 0.6 at last")
	same(t, "VM", lines(r, "vm", "OLTP-0001"), "operations_per_second [read] 0 at first", "operations_per_second [read] 300 at last", "latency_seconds [read] 0.0009 at last", "memory_usage_ratio [] 0.4 at first",
		"random_operations_ratio [] 0.8 at last", "working_set_bytes [union 120s] 2.09715e+06 at last", "tier_bytes_per_second [read  ssd local] 50 at last", "tier_bytes_per_second [write  hdd] 0 at last", "cpu_ready_ratio [] 0.001 at last")
	same(t, "cluster", lines(r, "cluster", "cl"), "operations_per_second [read] 0 at first", "operations_per_second [read] 500 at last",
		"latency_seconds [read] 0.0006 at last", "cpu_usage_ratio [] 0.3 at first", "cpu_usage_ratio [] 0.3 at last")
	same(t, "disk", lines(r, "disk", "scsi.1"), "operations_per_second [read] 0 at first", "operations_per_second [read] 250 at last", "operations_per_second [write] 0 at first",
		"operations_per_second [write] 50 at last", "latency_seconds [write] 0.0004 at last", "random_operations_ratio [] 0.7 at last")
	for _, s := range r.Samples {
		if (s.Labels["object"] == "vm" || s.Labels["object"] == "disk") && (s.Labels["vm"] != "OLTP-0001" || s.Labels["node"] != "host-a") {
			t.Errorf("labels %v", s.Labels)
		}
	}
	if len(lines(r, "container", "other")) > 0 || len(r.Missing) > 0 || r.Clock.IsZero() || len(p.requests) != 2+1+1+1+1+2+5 {
		t.Errorf("missing %v, clock %v, requests %v", r.Missing, r.Clock, p.requests)
	}
}

func TestPrismElement(t *testing.T) {
	r := reading(t, serve(t, &prism{}))
	traffic := []string{"operations_per_second [read] 400", "operations_per_second [write] 0", "bytes_per_second [read] 1.6384e+06", "latency_seconds [read] 0.00075", "cpu_usage_ratio [] 0.25"}
	same(t, "container", lines(r, "container", "default"), append([]string{"size_bytes [] 1000", "used_bytes [] 400"}, traffic...)...)
	same(t, "host", lines(r, "host", "host-a"), slices.Clone(traffic)...)
	same(t, "VM", lines(r, "vm", "OLTP-0001"), slices.Clone(traffic)...)
	same(t, "foreign VM", lines(r, "vm", "foreign"))
}

// TestRefusals: an API key is accepted, errors say why, and contain no credential.
func TestRefusals(t *testing.T) {
	o := serve(t, &prism{central: true})
	o.User = ""
	if r := reading(t, o); len(r.Samples) == 0 {
		t.Error("no samples with an API key")
	}
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"key":         {func(o *collect.Options) { o.Secret = "wrong-key" }, `source "prism": 401 Unauthorized: not with ***`},
		"certificate": {func(o *collect.Options) { o.Source.Fingerprint = "" }, `source "prism": its certificate is not trusted`},
	} {
		one := o
		c.change(&one)
		_, err := nutanix.Open(t.Context(), one)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), one.Secret) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
