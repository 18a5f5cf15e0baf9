package exporter_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/exporter"
	"github.com/braggdev/bragg/internal/collect/netapp"
	"github.com/braggdev/bragg/internal/collect/netapp/netapptest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// filer returns an exporter of a simulated system whose volume vol_a has counted so many reads at each reading, each of 2 ms and 4 KiB.
func filer(t *testing.T, reads ...uint64) *exporter.Exporter {
	t.Helper()
	f, o := netapptest.Serve(t, "cluster")
	reading := 0
	f.Before = func(f *netapptest.Filer) {
		n := reads[min(reading, len(reads)-1)]
		f.Counters = map[string]map[string]uint64{"vol_a": {"read_ops": n, "read_latency": 2000 * n, "read_data": 4096 * n}}
	}
	o.Source.Interval = 10 * time.Millisecond
	e := exporter.New([]exporter.Source{{Source: o.Source, Open: func(ctx context.Context) (collect.Collector, error) {
		c, err := netapp.Open(ctx, o)
		return counting{c, &reading}, err
	}}})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// counting counts readings after each.
type counting struct {
	collect.Collector
	reading *int
}

func (c counting) Collect(ctx context.Context) (collect.Reading, error) {
	r, err := c.Collector.Collect(ctx)
	*c.reading++
	return r, err
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

const volume = `{direction="read",name="vol_a",object="volume",source="filer",svm="svm1"} `

// TestOnce: one exposition has totals and, from two readings, rates and latencies; promtool accepts it.
func TestOnce(t *testing.T) {
	var out bytes.Buffer
	if err := filer(t, 100, 5100).Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "# TYPE bragg_storage_operations_total counter", "bragg_storage_operations_total"+volume+"5100",
		"# TYPE bragg_storage_latency_seconds gauge", "bragg_storage_latency_seconds"+volume+"0.002", "bragg_storage_operation_seconds_total"+volume+"10.2",
		`bragg_source_up{source="filer"} 1`, "# HELP bragg_storage_latency_seconds Mean")
	cmd := exec.Command(testreq.Program(t, "promtool"), "check", "metrics")
	cmd.Stdin = &out
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool: %v: %s", err, said)
	}
}

// TestFewOperations: a latency of few operations is absent, and so is a rate across a restart.
func TestFewOperations(t *testing.T) {
	for what, reads := range map[string][]uint64{"few": {100, 109}, "none": {100, 100}} {
		var out bytes.Buffer
		if err := filer(t, reads...).Write(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "bragg_storage_latency_seconds{") || !strings.Contains(out.String(), "bragg_storage_operations_per_second{") {
			t.Errorf("%s: got\n%s", what, &out)
		}
	}
}

// TestServe: each scrape reads the source, unless its reading is fresh; a source that is away is down and the scrape succeeds.
func TestServe(t *testing.T) {
	e := filer(t, 100, 5100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, listener, "") }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	scrape := func() string {
		response, err := client.Get("http://" + listener.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
		return string(text)
	}
	has(t, scrape(), "bragg_storage_operations_total"+volume+"100")
	time.Sleep(10 * time.Millisecond) // an interval
	has(t, scrape(), "bragg_storage_latency_seconds"+volume+"0.002")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	away := exporter.New([]exporter.Source{{Source: target.Source{Name: "s"}, Open: func(context.Context) (collect.Collector, error) {
		return nil, errors.New("it is away")
	}}})
	if err := away.Write(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "it is away") {
		t.Errorf("got %v", err)
	}
	has(t, out.String(), `bragg_source_up{source="s"} 0`)
}

// TestPushgateway pushes to a real one, with a group that has a slash, and deletes the group.
func TestPushgateway(t *testing.T) {
	program := testreq.Program(t, "prometheus-pushgateway")
	address := fmt.Sprintf("127.0.0.1:%d", testreq.FreePort(t))
	cmd := exec.Command(program, "--web.listen-address="+address, "--persistence.file="+filepath.Join(t.TempDir(), "state"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	metrics := func() string {
		for {
			response, err := client.Get("http://" + address + "/metrics")
			if err != nil {
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond) // it starts
				continue
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	metrics()
	g := exporter.Gateway{URL: "http://" + address, Job: "bragg", Grouping: map[string]string{"run": "a/b"}}
	if err := filer(t, 100, 5100).Push(t.Context(), g, 0); err != nil {
		t.Fatal(err)
	}
	pushed := `bragg_storage_latency_seconds{direction="read",instance="",job="bragg",name="vol_a",object="volume",run="a/b",source="filer",svm="svm1"} 0.002`
	has(t, metrics(), pushed)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	g.Delete = true
	if err := filer(t, 1, 2).Push(ctx, g, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	// A gateway accepts a deletion before it does it.
	for deadline := time.Now().Add(10 * time.Second); strings.Contains(metrics(), "bragg_storage"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the group is still there:\n%s", metrics())
		}
	}
}

// TestRefusedPush: an error of the gateway contains its reason and not the credential, and the push goes to no other host.
func TestRefusedPush(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("redirected") }))
	defer elsewhere.Close()
	for want, handler := range map[string]http.HandlerFunc{
		"401": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"you sent": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusBadRequest)
		},
		"inconsistent lot": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "inconsistent lot", http.StatusBadRequest) },
	} {
		server := httptest.NewServer(handler)
		basic := base64.StdEncoding.EncodeToString([]byte("u:hunter2"))
		for _, authorization := range []string{"Bearer hunter2", "Basic " + basic, "hunter2"} {
			err := filer(t, 1, 2).Push(t.Context(), exporter.Gateway{URL: server.URL, Job: "j", Authorization: authorization}, 0)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), basic) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		server.Close()
	}
	for _, bad := range []string{"", "gateway:9091", "http://u:hunter2@gateway", "http://gateway?token=hunter2"} {
		if err := (exporter.Gateway{URL: bad}).Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
