package exporter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/netapp/netapptest"
	"github.com/braggdev/bragg/internal/console"
	prismemulator "github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// What the simulated volume does all the time.
const (
	readsPerSecond = 1000.0
	bytesPerSecond = 4096 * readsPerSecond
	latencySeconds = 0.002
)

// steady is a system whose volume reads steadily, and a target file with it as source.
func steady(t *testing.T) (file string) {
	t.Helper()
	f, o := netapptest.Serve(t, "rest")
	began := time.Now()
	f.Set(func(f *netapptest.Filer) {
		f.Before = func(f *netapptest.Filer) {
			n := uint64(readsPerSecond * time.Since(began).Seconds())
			f.Counters = map[string]map[string]uint64{"vol_a": {"read_ops": n, "read_latency": 2000 * n, "read_data": 4096 * n}}
		}
	})
	t.Setenv("FILER_PASSWORD", netapptest.Password)
	file = filepath.Join(t.TempDir(), "target.yml")
	text := fmt.Sprintf("provider: fake\nnodes: 2\ncredentials: {filer: {user: %s, secret: {env: FILER_PASSWORD}}}\nsources:\n"+
		"  - {name: filer, kind: netapp, url: %q, credential: filer, fingerprint: %q, interval: 1s,\n"+
		"     charts: [{title: reads of volumes, query: 'sum by (name) (rate(bragg_storage_operations_total{direction=\"read\"}[$__rate_interval]))', unit: IOPS}]}\n", netapptest.User, o.Source.URL, o.Source.Fingerprint)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lines collects what a command prints, for a reader beside it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bragg runs one command and returns its exit code.
func bragg(ctx context.Context, out, errs io.Writer, signals <-chan os.Signal, args ...string) int {
	return cli.Main(ctx, console.Process{Arguments: args, Getenv: os.Getenv, Directory: ".", Stdin: strings.NewReader(""), Stdout: out, Stderr: errs,
		Signals: signals, Exit: func(int) {}})
}

// until waits for what a pattern finds.
func until(t *testing.T, pattern string, text func() string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(text()); m != nil {
			return m[1]
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no %s in %s", pattern, text())
	return ""
}

// prometheus starts a real one that scrapes an exporter every second, and returns a function that queries it until there is a number.
func prometheus(t *testing.T, exporter string) func(query string) float64 {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: storage, static_configs: [{targets: [%q]}]}]\n", exporter)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", testreq.FreePort(t))
	cmd := exec.Command(testreq.Program(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return func(query string) float64 {
		found := until(t, `"value":\[[0-9.]+,"([^"]+)"\]`, func() string {
			response, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
			if err != nil {
				return "" // it starts
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		})
		value, err := strconv.ParseFloat(found, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

const scenarioText = `
name: steady
display_name: Steady
summary: One load
description: For a test of sources.
tags: [test]
estimated_runtime: 1
vms: [{db: {template: ubuntu1604, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 1}, nodes: "0", count_per_node: 1}}]
workloads: [{Reads: {vm_group: db, config_file: reads.fio}}]
results:
  - IOPS: {vm_group: db, result_type: iops}
  - By query: {result_type: generic, query: 'sum(rate(bragg_storage_operations_total{__curie_filter_scenario__,source="filer"}[3s]))'}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
run:
  - workload.Start: {workload_name: Reads, runtime_secs: 8}
`

// run runs a scenario on a simulated target and returns its bundle.
func run(t *testing.T, file string) *result.Bundle {
	t.Helper()
	folder, runs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"test.yml": scenarioText, "reads.fio": "[j]\nrw=randread\nbs=4k\nsize=16m\nrate_iops=100\ntime_based=1\nruntime=8\nfilename=/dev/sdb\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := session.Prepare(t.Context(), session.Order{Source: scenario.Source{Path: folder, Trusted: true}, Runs: runs, Target: file,
		Plan: planner.Options{FullPercentMax: 100}, Program: session.Program{Version: "test", Leases: runs}})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.Run(t.Context(), session.RunOptions{})
	if err != nil || len(outcome.Problems) > 0 {
		t.Fatal(outcome, err)
	}
	err = filepath.WalkDir(runs, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(netapptest.Password)) {
			t.Errorf("%s contains the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(outcome.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// near compares a number with what the volume does. Rates are off where counters were read late.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestTheSameNumbersEverywhere: in the bundle, in the report, by a query of the scenario, by one exposition, and in a real Prometheus that
// scraped the exporter.
func TestTheSameNumbersEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("short: runs a load for 8 seconds")
	}
	testreq.Program(t, "prometheus")
	file := steady(t)
	signals := make(chan os.Signal, 1)
	served, out := make(chan int, 1), &lines{}
	go func() {
		served <- bragg(t.Context(), out, out, signals, "exporter", "netapp", "--target", file, "--listen", "127.0.0.1:0")
	}()
	query := prometheus(t, until(t, `http://(.*)/metrics`, out.String))

	b := run(t, file)
	var reads, latencies []float64
	for s, err := range b.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		if s.Labels["source"] == "filer" && s.Labels["name"] == "vol_a" && s.Labels["direction"] == "read" {
			switch s.Name {
			case collect.OperationsRate:
				reads = append(reads, s.Value)
			case collect.Latency:
				latencies = append(latencies, s.Value)
			}
		}
	}
	if len(reads) < 4 || len(latencies) != len(reads) {
		t.Fatalf("%d rates and %d latencies", len(reads), len(latencies))
	}
	near(t, "rate in the bundle", mean(reads), readsPerSecond, 0.05)
	near(t, "latency in the bundle", mean(latencies), latencySeconds, 1e-6)

	summary, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]float64{}
	for _, r := range summary.Results {
		for _, st := range r.Stats {
			if st.Window == "" && (st.Series == "read" || st.Series == "vol_a" || !r.Unasked) {
				shown[r.Title] = float64(st.Mean)
			}
		}
	}
	near(t, "operations in the report", shown["filer: operations"], readsPerSecond, 0.1)
	near(t, "throughput in the report", shown["filer: throughput"], bytesPerSecond, 0.1)
	near(t, "latency in the report", shown["filer: latency"], 1e9*latencySeconds, 1e-3)
	near(t, "chart of the target file", shown["filer: reads of volumes"], readsPerSecond, 0.1)
	near(t, "query of the scenario", shown["By query"], readsPerSecond, 0.1)

	near(t, "latency in Prometheus", query(`bragg_storage_latency_seconds{source="filer",name="vol_a",direction="read"}`), latencySeconds, 1e-6)
	near(t, "rate in Prometheus", query(`irate(bragg_storage_operations_total{source="filer",name="vol_a",direction="read"}[20s])`), readsPerSecond, 0.25)
	near(t, "bytes in Prometheus", query(`bragg_storage_bytes_per_second{direction="read"} / on (name) bragg_storage_operations_per_second{direction="read"}`), 4096, 1e-6)

	var once bytes.Buffer
	if code := bragg(t.Context(), &once, out, nil, "exporter", "netapp", "--target", file, "--once"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	found := until(t, `bragg_storage_latency_seconds\{direction="read",name="vol_a",.*\} (\S+)`, once.String)
	value, err := strconv.ParseFloat(found, 64)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "latency by --once", value, latencySeconds, 1e-6)

	signals <- syscall.SIGTERM
	if code := <-served; code != 0 {
		t.Errorf("the exporter ended with %d: %s", code, out)
	}
	if strings.Contains(out.String()+once.String(), netapptest.Password) {
		t.Error("the exporter printed the password")
	}
	if sources, _ := json.Marshal(b.Manifest().Target.Sources); string(sources) != `[{"name":"filer","kind":"netapp","interval_ns":1000000000,"charts":[{"title":"reads of volumes","query":"sum by (name) (rate(bragg_storage_operations_total{direction=\"read\"}[$__rate_interval]))","unit":"IOPS"}]}]` {
		t.Errorf("sources of the manifest: %s", sources)
	}
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// TestFlags: flags describe a source like a target file; wrong ones are usage errors that show no secret.
func TestFlags(t *testing.T) {
	_, o := netapptest.Serve(t, "7-mode")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(netapptest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WRONG", "hunter3")
	good := []string{"exporter", "netapp", "--url", o.Source.URL, "--user", netapptest.User, "--fingerprint", o.Source.Fingerprint, "--interval", "1s", "--once"}
	file := steady(t)
	for what, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"good":         {append(good, "--secret-file", secret), 0, `bragg_storage_size_bytes{aggregate="aggr0",name="vol_a",node="filer7",object="volume",source="netapp"} 1000`},
		"one":          {append(good, "--secret-file", secret, "--objects", "vol_b", "--name", "f7"), 0, `bragg_storage_size_bytes{aggregate="aggr0",name="vol_b",node="filer7",object="volume",source="f7"} 1000`},
		"refused":      {append(good, "--secret-env", "WRONG"), 69, "401 Unauthorized: 401 for ***"},
		"no password":  {good, 64, "--user needs a password"},
		"nothing":      {[]string{"exporter", "netapp"}, 64, "no storage system given"},
		"bad address":  {[]string{"exporter", "netapp", "--url", "filer"}, 64, "--url: want an address"},
		"password":     {[]string{"exporter", "netapp", "--url", "https://u:hunter4@filer"}, 64, "--url: want no user"},
		"both":         {[]string{"exporter", "netapp", "--url", "https://filer", "--target", file}, 64, "--target has the address"},
		"other kind":   {[]string{"exporter", "vsphere", "--target", file}, 65, "no source of kind vsphere"},
		"other source": {[]string{"exporter", "netapp", "--target", file, "--source", "x"}, 65, "no source of kind netapp"},
		"web":          {[]string{"exporter", "netapp", "--target", file, "--web-config-file", secret}, 65, "web configuration: yaml: "},
		"push":         {append(good, "--secret-file", secret, "--push", "http://u:hunter4@gateway"), 64, "--push: the address of a Pushgateway holds a user"},
		"away":         {append(good, "--secret-file", secret, "--push", "http://127.0.0.1:1"), 69, "push metrics: "},
	} {
		var out, errs bytes.Buffer
		code := bragg(t.Context(), &out, &errs, nil, c.args...)
		all := out.String() + errs.String()
		if code != c.code || !strings.Contains(all, c.want) || strings.Contains(all, "hunter") {
			t.Errorf("%s: exit code %d, want %d and %q: %s", what, code, c.code, c.want, all)
		}
	}
}

// promtool checks metrics that a command printed.
func promtool(t *testing.T, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testreq.Program(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool: %v: %s", err, said)
	}
}

// hostile is a name that a user may give to a volume or VM.
const hostile = "vol \"1\" \\ {x=\"y\"}\n# é"

// TestExpositions: promtool accepts what the commands print, with hostile names of objects.
func TestExpositions(t *testing.T) {
	f, o := netapptest.Serve(t, "rest")
	f.Set(func(f *netapptest.Filer) {
		f.Counters = map[string]map[string]uint64{hostile: {"read_ops": 7, "read_latency": 2000, "read_data": 4096}}
		f.Zeroed = map[string]string{"1.0." + hostile: "40"}
	})
	e, err := prismemulator.New(prismemulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Setenv("PRISM_PASSWORD", e.Credentials.Password)
	t.Setenv("FILER_PASSWORD", netapptest.Password)
	for kind, args := range map[string][]string{
		"netapp":  {"--url", o.Source.URL, "--user", netapptest.User, "--secret-env", "FILER_PASSWORD", "--fingerprint", o.Source.Fingerprint, "--interval", "1s"},
		"nutanix": {"--url", e.URL, "--user", e.Credentials.User, "--secret-env", "PRISM_PASSWORD", "--fingerprint", e.Fingerprint, "--interval", "1s"},
	} {
		var out, errs bytes.Buffer
		code := bragg(t.Context(), &out, &errs, nil, append([]string{"exporter", kind, "--once"}, args...)...)
		if code != 0 || !strings.Contains(out.String(), `bragg_source_up{source="`+kind+`"} 1`) || strings.Count(out.String(), "\n") < 10 {
			t.Errorf("%s: exit code %d: %s\n%s", kind, code, &errs, &out)
		}
		if kind == "netapp" && !strings.Contains(out.String(), `name="vol \"1\" \\ {x=\"y\"}\n# é"`) {
			t.Errorf("no hostile name in\n%s", &out)
		}
		promtool(t, out.String())
	}
}
