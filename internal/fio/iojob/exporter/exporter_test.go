package exporter_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/fio/iojob/exporter"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latencies of one millisecond and of 30 µs, so many of each.
func latencies(millis, micros uint64) *stat.Histogram {
	h := &stat.Histogram{}
	h.RecordN(1_000_000, millis)
	h.RecordN(30_000, micros)
	return h
}

func live() []iojob.Live {
	l := iojob.Live{
		Job: `odd "name"`, Clone: 3, OpenLoop: true, Due: 120, NotIssued: 5, Backlog: 7, InFlight: 4, CPUNanos: 2e9, StalledNanos: 5e8,
		Devices: map[string]interval.DeviceTraffic{"/data/file": {{Operations: 100, Bytes: 409600, ServiceNanos: 3e9}}},
	}
	l.Traffic[interval.Read] = interval.Traffic{
		Operations: 100, Bytes: 409600, Errors: map[string]uint64{"EIO": 2}, Service: latencies(60, 40), Response: latencies(100, 0),
	}
	return []iojob.Live{l, {Job: "closed", Clone: 4}}
}

func get(t *testing.T, s *exporter.Server, accept string) ([]byte, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", response.Status, err, text)
	}
	return text, response.Header
}

func listen(t *testing.T) *exporter.Server {
	t.Helper()
	s, err := exporter.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestText(t *testing.T) {
	s := listen(t)
	if text, _ := get(t, s, ""); strings.Contains(string(text), "bragg_") {
		t.Errorf("metrics before anything began:\n%s", text)
	}
	s.Watch(live)
	text, _ := get(t, s, "")
	for _, want := range []string{
		`bragg_operations_total{clone="3",direction="read",workload="odd \"name\""} 100`,
		`bragg_bytes_total{clone="3",direction="read",workload="odd \"name\""} 409600`,
		`bragg_errors_total{class="EIO",clone="3",direction="read",workload="odd \"name\""} 2`,
		`bragg_operations_due_total{clone="3",workload="odd \"name\""} 120`,
		`bragg_operations_not_issued_total{clone="3",workload="odd \"name\""} 5`,
		`bragg_backlog_operations{clone="3",workload="odd \"name\""} 7`,
		`bragg_in_flight_operations{clone="3",workload="odd \"name\""} 4`,
		`bragg_in_flight_operations{clone="4",workload="closed"} 0`,
		`bragg_generator_cpu_seconds_total{clone="3",workload="odd \"name\""} 2`,
		`bragg_generator_stalled_seconds_total{clone="3",workload="odd \"name\""} 0.5`,
		`bragg_device_service_time_seconds_total{clone="3",device="/data/file",direction="read",workload="odd \"name\""} 3`,
		`bragg_service_time_seconds_bucket{clone="3",direction="read",workload="odd \"name\"",le="2e-05"} 0`,
		`bragg_service_time_seconds_bucket{clone="3",direction="read",workload="odd \"name\"",le="5e-05"} 40`,
		`bragg_service_time_seconds_bucket{clone="3",direction="read",workload="odd \"name\"",le="0.002"} 100`,
		`bragg_service_time_seconds_bucket{clone="3",direction="read",workload="odd \"name\"",le="+Inf"} 100`,
		`bragg_response_time_seconds_count{clone="3",direction="read",workload="odd \"name\""} 100`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	for _, not := range []string{`direction="write"`, `bragg_backlog_operations{clone="4"`, `bragg_operations_due_total{clone="4"`} {
		if strings.Contains(string(text), not) {
			t.Errorf("there is %s", not)
		}
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("promtool would say: %v, %v", problems, err)
	}
}

// A scraper that knows native histograms gets them, with the same operations in them.
func TestNativeHistograms(t *testing.T) {
	s := listen(t)
	s.Watch(live)
	text, header := get(t, s, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	decoder := expfmt.NewDecoder(strings.NewReader(string(text)), expfmt.ResponseFormat(header))
	found := false
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		if family.GetName() != "bragg_service_time_seconds" {
			continue
		}
		found = true
		h := family.Metric[0].Histogram
		if h.GetSchema() != 4 || h.GetSampleCount() != 100 || math.Abs(h.GetSampleSum()-0.0612) > 1e-9 || len(h.PositiveSpan) != 1 {
			t.Errorf("histogram %v", h)
		}
		at, count := int(h.PositiveSpan[0].GetOffset()), int64(0)
		holds := map[int]int64{}
		for _, delta := range h.PositiveDelta {
			count += delta
			if count > 0 {
				holds[at] = count
			}
			at++
		}
		for _, want := range []struct {
			seconds float64
			count   int64
		}{{0.001, 60}, {30e-6, 40}} {
			if k := int(math.Ceil(math.Log2(want.seconds) * 16)); holds[k] != want.count {
				t.Errorf("bucket %d of %v s holds %d, want %d; all: %v", k, want.seconds, holds[k], want.count, holds)
			}
		}
	}
	if !found {
		t.Error("bragg_service_time_seconds is missing")
	}
}

func TestAddressInUse(t *testing.T) {
	s := listen(t)
	if other, err := exporter.Listen(s.Address()); err == nil {
		t.Errorf("listens twice at %s", other.Address())
	}
	if _, err := exporter.Listen("nonsense"); err == nil {
		t.Error("listens at nonsense")
	}
}
