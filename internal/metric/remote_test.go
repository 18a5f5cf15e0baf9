package metric_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// startStore starts a real store on a free port and waits until it answers; arguments may hold ADDRESS and DIR.
func startStore(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	path := testreq.Program(t, program)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	for i, a := range arguments {
		arguments[i] = strings.NewReplacer("ADDRESS", address, "DIR", dir).Replace(a)
	}
	cmd := exec.Command(path, arguments...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	base := "http://" + address
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get(base + "/api/v1/query?query=1"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return base
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer", program)
		}
	}
}

// ask evaluates a query that has one value; NaN: it has none.
func ask(t *testing.T, base, query string, at time.Time) float64 {
	t.Helper()
	r, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(query) + "&time=" + strconv.FormatFloat(float64(at.UnixMilli())/1e3, 'f', 3, 64))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if len(answer.Data.Result) != 1 {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// remoteManifest is that of a run that began some minutes ago: stores refuse what is old.
func remoteManifest() result.Manifest {
	m := result.Manifest{Run: "20250101-000000-aaaaa", Created: time.Now().Add(-2 * time.Minute).Truncate(time.Second)}
	m.Scenario.Name = "four_corners"
	return m
}

// fillBoth appends thirty seconds of a load and a scraped value.
func fillBoth(t *testing.T, s *metric.Store) (operations uint64, all *stat.Histogram) {
	t.Helper()
	all = &stat.Histogram{}
	for second := range 30 {
		iv := interval.Interval{Workload: "W", Group: "g", VM: "g-0001", StartNanos: int64(second) * 1e9, LengthNanos: 1e9}
		h := &stat.Histogram{}
		for i := range 100 + second {
			h.Record(uint64(100_000 * (i + 1)))
			all.Record(uint64(100_000 * (i + 1)))
		}
		iv.Directions[interval.Read].Operations, iv.Directions[interval.Read].Bytes, iv.Directions[interval.Read].Service = h.Count(), 4096*h.Count(), h
		operations += h.Count()
		if err := s.AppendInterval(&iv); err != nil {
			t.Fatal(err)
		}
		sample := result.Sample{AtNanos: int64(second) * 1e9, Name: "up", Labels: map[string]string{"vm": "g-0001"}, Value: float64(second)}
		if err := s.AppendSamples([]result.Sample{sample}); err != nil {
			t.Fatal(err)
		}
	}
	return operations, all
}

func writeBoth(t *testing.T, o metric.RemoteOptions) (operations uint64, all *stat.Histogram, end time.Time, sent uint64) {
	t.Helper()
	m := remoteManifest()
	s, err := metric.Open(filepath.Join(t.TempDir(), "metrics"), m)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := metric.StartRemote(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Forward(r)
	operations, all = fillBoth(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sent, dropped, why := r.Close(ctx)
	if dropped > 0 || sent == 0 {
		t.Fatalf("%d sent, %d dropped: %v", sent, dropped, why)
	}
	return operations, all, m.Created.Add(30 * time.Second), sent
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

func TestRemoteWriteToPrometheus(t *testing.T) {
	base := startStore(t, "prometheus", "--web.listen-address=ADDRESS", "--storage.tsdb.path=DIR/data", "--config.file=/dev/null",
		"--web.enable-remote-write-receiver", "--enable-feature=native-histograms")
	operations, all, end, _ := writeBoth(t, metric.RemoteOptions{URL: base + "/api/v1/write"})
	const run = `{run="20250101-000000-aaaaa",scenario="four_corners",vm_group="g",vm="g-0001",workload="W",direction="read"}`
	if got := ask(t, base, "bragg_operations_total"+run, end); got != float64(operations) {
		t.Errorf("%v operations, the bundle has %d", got, operations)
	}
	if got := ask(t, base, "histogram_count(bragg_service_time_seconds"+run+")", end); got != float64(operations) {
		t.Errorf("%v operations in the histogram, the bundle has %d", got, operations)
	}
	if got := ask(t, base, "histogram_sum(bragg_service_time_seconds"+run+")", end); !near(got, all.Sum()/1e9, 1e-9) {
		t.Errorf("%v s in all, the bundle has %v", got, all.Sum()/1e9)
	}
	if got := ask(t, base, "histogram_quantile(0.99, bragg_service_time_seconds"+run+")", end); !near(got, all.Quantile(0.99)/1e9, 0.045) {
		t.Errorf("p99 is %v s, the bundle has %v", got, all.Quantile(0.99)/1e9)
	}
	if got := ask(t, base, `up{run="20250101-000000-aaaaa",vm="g-0001"}`, end); got != 29 {
		t.Errorf("up is %v", got)
	}
}

func TestRemoteWriteToVictoriaMetrics(t *testing.T) {
	base := startStore(t, "victoria-metrics", "-httpListenAddr=ADDRESS", "-storageDataPath=DIR/data", "-search.latencyOffset=0s")
	operations, all, end, _ := writeBoth(t, metric.RemoteOptions{URL: base + "/api/v1/write", Quantiles: true})
	if r, err := http.Get(base + "/internal/force_flush"); err == nil {
		_ = r.Body.Close()
	}
	const run = `run="20250101-000000-aaaaa",vm="g-0001",workload="W",direction="read"`
	waitFor := func(query string, want, share float64) {
		var got float64
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if got = ask(t, base, query, end); near(got, want, share) {
				return
			}
		}
		t.Errorf("%s is %v, want %v", query, got, want)
	}
	waitFor("bragg_operations_total{"+run+"}", float64(operations), 0)
	waitFor("bragg_service_time_seconds_count{"+run+"}", float64(operations), 0)
	waitFor("bragg_service_time_seconds_sum{"+run+"}", all.Sum()/1e9, 1e-9)
	last := &stat.Histogram{} // quantiles are those of the last second
	for i := range 129 {
		last.Record(uint64(100_000 * (i + 1)))
	}
	waitFor("bragg_service_time_seconds{"+run+`,quantile="0.99"}`, last.Quantile(0.99)/1e9, 1e-9)
}

// TestRemoteWriteLosesNothingThatIsAccepted: a store that fails for a while is called again, with the credentials.
func TestRemoteWriteTriesAgain(t *testing.T) {
	var mu sync.Mutex
	calls, authorizations, queries := 0, map[string]bool{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		authorizations[r.Header.Get("Authorization")], queries[r.URL.RawQuery] = true, true
		if calls++; calls < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	_, _, _, sent := writeBoth(t, metric.RemoteOptions{URL: server.URL, Authorization: "Bearer hunter2", Query: "db=x&p=hunter%262"})
	mu.Lock()
	defer mu.Unlock()
	if calls < 3 || sent == 0 || !authorizations["Bearer hunter2"] || len(authorizations) != 1 ||
		!queries["db=x&p=hunter%262"] || len(queries) != 1 {
		t.Errorf("%d calls, %d sent, authorizations %v, queries %v", calls, sent, authorizations, queries)
	}
}

// TestRemoteWriteToDeadStore: a store that is down or refuses costs its caller nothing, and everything is counted.
func TestRemoteWriteToDeadStore(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such tenant", http.StatusForbidden)
	}))
	defer refusing.Close()
	redirecting := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	defer redirecting.Close()
	for name, address := range map[string]string{"down": "http://127.0.0.1:1/api/v1/write", "refusing": refusing.URL, "redirecting": redirecting.URL} {
		s, err := metric.Open(filepath.Join(t.TempDir(), "metrics"), remoteManifest())
		if err != nil {
			t.Fatal(err)
		}
		r, err := metric.StartRemote(metric.RemoteOptions{URL: address, Authorization: "Bearer hunter2"})
		if err != nil {
			t.Fatal(err)
		}
		s.Forward(r)
		fillBoth(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		if name == "down" {
			cancel() // what is left is given up
		}
		sent, dropped, why := r.Close(ctx)
		cancel()
		if sent != 0 || dropped == 0 || why == nil || strings.Contains(why.Error(), "hunter2") {
			t.Errorf("%s: %d sent, %d dropped: %v", name, sent, dropped, why)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRemoteWriteTooFast: a store that limits the rate, answers slowly, or dies between two requests costs a bounded queue. What it
// accepted and what is missing add up to everything, and the record of the run is not touched.
func TestRemoteWriteTooFast(t *testing.T) {
	t.Parallel()
	var requests, values atomic.Int64
	accept := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, err := snappy.Decode(nil, body)
		var got prompb.WriteRequest
		if err == nil {
			err = got.Unmarshal(text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, s := range got.Timeseries {
			values.Add(int64(len(s.Samples) + len(s.Histograms)))
		}
	}
	for name, test := range map[string]struct {
		serve    http.HandlerFunc
		complete bool
		why      string
	}{
		"429": {func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%2 == 1 {
				w.Header().Set("Retry-After", "0")
				http.Error(w, "rate limit", http.StatusTooManyRequests)
				return
			}
			accept(w, r)
		}, true, ""},
		"always 429": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "rate limit", http.StatusTooManyRequests) }, false, "rate limit"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of a connection only after the body
			<-r.Context().Done()
		}, false, ""},
		"dies": {func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
			accept(w, r)
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			values.Store(0)
			server := httptest.NewUnstartedServer(test.serve)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Start()
			defer server.Close()
			r, err := metric.StartRemote(metric.RemoteOptions{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			const most = 300
			if !test.complete {
				r.LimitQueue(most)
			}
			s, err := metric.Open(filepath.Join(t.TempDir(), "metrics"), remoteManifest())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.Forward(r)
			if name == "dies" { // the first request is accepted
				fillBoth(t, s)
				for deadline := time.Now().Add(30 * time.Second); values.Load() == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				}
			}
			fillBoth(t, s)
			if n := r.Waiting(); !test.complete && n > most {
				t.Errorf("%d values wait", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if !test.complete {
				cancel()
			}
			defer cancel()
			sent, dropped, why := r.Close(ctx)
			if int64(sent) != values.Load() || test.complete != (dropped == 0) || (why != nil) == test.complete {
				t.Errorf("%d sent, the store has %d, %d dropped: %v", sent, values.Load(), dropped, why)
			}
			if name == "dies" && sent == 0 {
				t.Error("nothing was accepted")
			}
		})
	}
}

func TestRemoteWriteAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"http://host:9090/api/v1/write": true, "https://host/x?tenant=1": false, "http://host/x?token=hunter2": false, "http://host/x?": false, "http://host/x#hunter2": false, "host:9090": false, "": false,
		"file:///etc/passwd": false, "http://user:hunter2@host/": false, "http://": false, "-x": false,
	} {
		err := metric.RemoteOptions{URL: address}.Validate()
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret leaks: %v", err)
		}
	}
}

// The error for an unreachable store has its address, as the report shows it, without credentials.
func TestRemoteWriteErrorsHoldNoSecret(t *testing.T) {
	for _, query := range []string{"hunter2", "a=%zz", "a?b", "a#b", "a b", "a;b"} {
		err := metric.RemoteOptions{URL: "http://host/write", Query: query}.Validate()
		if (err == nil) != (query == "hunter2") {
			t.Errorf("query %q: %v", query, err)
		}
	}
	o := metric.RemoteOptions{URL: "http://127.0.0.1:1/write", Authorization: "Bearer hunter2", Query: "token=hunter2"}
	r, err := metric.RemoteClient(o).Post(o.URL, "text/plain", strings.NewReader("x"))
	if err == nil {
		_ = r.Body.Close()
		t.Fatal("an unexpected answer")
	}
	if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}
