package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// scrape returns the samples of a page by name and labels, and fails on a line that is not in the exposition format.
func scrape(t *testing.T, s *Server) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	sample := regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\}) (\S+)$`)
	samples, typed := map[string]float64{}, map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			typed[strings.Fields(rest)[0]] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no exposition format: %q", line)
		}
		name, _, _ := strings.Cut(m[1], "{")
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil || !typed[name] {
			t.Fatalf("line %q: %v, type known: %v", line, err, typed[name])
		}
		if _, twice := samples[m[1]]; twice {
			t.Fatalf("sample twice: %s", m[1])
		}
		if !strings.Contains(m[1], `simulated="true"`) {
			t.Errorf("sample does not say that it is simulated: %s", m[1])
		}
		samples[m[1]] = value
	}
	return samples
}

func TestDiskCountersOfEachDevice(t *testing.T) {
	devices := []load.Device{{Name: "/dev/sdb"}, {Name: "/dev/sdc"}}
	s := newTestServer(t, newScripted(), func(o *Options) { o.Devices = devices })
	before := scrape(t, s)
	iv := interval.Interval{LengthNanos: 1e9, InFlight: 6, Devices: map[string]interval.DeviceTraffic{
		"/dev/sdb": {
			interval.Read:  {Operations: 100, Bytes: 409600, ServiceNanos: 5e8},
			interval.Write: {Operations: 10, Bytes: 81920, ServiceNanos: 2e8},
		},
		"/dev/sdc": {interval.Trim: {Operations: 3, Bytes: 1536, ServiceNanos: 4e9}},
	}}
	s.meter.add(&iv, devices)
	s.meter.add(&iv, devices)
	after := scrape(t, s)
	for name, want := range map[string]float64{
		`node_disk_reads_completed_total{device="sdb",simulated="true"}`:          200,
		`node_disk_read_bytes_total{device="sdb",simulated="true"}`:               819200,
		`node_disk_read_time_seconds_total{device="sdb",simulated="true"}`:        1,
		`node_disk_writes_completed_total{device="sdb",simulated="true"}`:         20,
		`node_disk_written_bytes_total{device="sdb",simulated="true"}`:            163840,
		`node_disk_write_time_seconds_total{device="sdb",simulated="true"}`:       0.4,
		`node_disk_io_time_seconds_total{device="sdb",simulated="true"}`:          1.4,
		`node_disk_io_time_weighted_seconds_total{device="sdb",simulated="true"}`: 1.4,
		`node_disk_reads_completed_total{device="sdc",simulated="true"}`:          0,
		`node_disk_discards_completed_total{device="sdc",simulated="true"}`:       6,
		`node_disk_discarded_sectors_total{device="sdc",simulated="true"}`:        6,
		`node_disk_discard_time_seconds_total{device="sdc",simulated="true"}`:     8,
		`node_disk_io_time_seconds_total{device="sdc",simulated="true"}`:          2, // never more than the time that passed
		`node_disk_io_now{device="sdc",simulated="true"}`:                         3,
	} {
		if got, ok := after[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		if got, ok := before[name]; !ok || got != 0 {
			t.Errorf("%s began with %v, want 0", name, got)
		}
	}
}

func TestOtherMetrics(t *testing.T) {
	s := newTestServer(t, newScripted(), func(o *Options) {
		o.VM, o.VCPUs, o.RAMBytes = "DB\"\\\n-0001", 2, 1<<30
	})
	p := connect(t, s, client.Options{})
	if _, err := p.client.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	samples := scrape(t, s)
	for _, cpu := range []string{"0", "1"} {
		for _, mode := range []string{"idle", "system", "user"} {
			name := fmt.Sprintf(`node_cpu_seconds_total{cpu="%s",mode="%s",simulated="true"}`, cpu, mode)
			if v, ok := samples[name]; !ok || v < 0 {
				t.Errorf("%s is %v", name, v)
			}
		}
	}
	total, free := samples[`node_memory_MemTotal_bytes{simulated="true"}`], samples[`node_memory_MemAvailable_bytes{simulated="true"}`]
	if total != 1<<30 || free <= 0 || free >= total {
		t.Errorf("memory is %v of %v", free, total)
	}
	for _, name := range []string{"node_network_receive_bytes_total", "node_network_transmit_bytes_total"} {
		if samples[name+`{device="eth0",simulated="true"}`] <= 0 {
			t.Errorf("%s counts nothing", name)
		}
	}
	if samples[`node_boot_time_seconds{simulated="true"}`] <= 0 {
		t.Error("no boot time")
	}
	found := false
	for name := range samples {
		found = found || strings.HasPrefix(name, "node_uname_info{") && strings.Contains(name, `nodename="DB\"\\\n-0001"`)
	}
	if !found {
		t.Error("node_uname_info does not carry the name of the VM")
	}
}

// An interval without devices is divided without losing or making up anything.
func TestDivideKeepsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := make([]load.Device, rapid.IntRange(1, 9).Draw(t, "devices"))
		for i := range devices {
			devices[i].Name = fmt.Sprint("/dev/sd", i)
		}
		var iv interval.Interval
		for d := range interval.DirectionCount {
			h := &stat.Histogram{}
			h.RecordN(rapid.Uint64Range(0, 1e9).Draw(t, "latency"), rapid.Uint64Range(0, 1e4).Draw(t, "count"))
			iv.Directions[d] = interval.Traffic{
				Operations: h.Count(), Bytes: rapid.Uint64Range(0, 1<<40).Draw(t, "bytes"), Service: h,
			}
		}
		var sum interval.DeviceTraffic
		for _, traffic := range divide(&iv, devices) {
			for d := range traffic {
				sum[d].Operations += traffic[d].Operations
				sum[d].Bytes += traffic[d].Bytes
				sum[d].ServiceNanos += traffic[d].ServiceNanos
			}
		}
		for d := range sum {
			want := interval.DeviceCount{
				Operations: iv.Directions[d].Operations, Bytes: iv.Directions[d].Bytes,
				ServiceNanos: uint64(iv.Directions[d].Service.Sum()),
			}
			if sum[d] != want {
				t.Fatalf("direction %d is %+v, want %+v", d, sum[d], want)
			}
		}
	})
}
