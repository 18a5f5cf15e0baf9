package metric_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// collector is a Sink that can be queried.
type collector struct {
	mu      sync.Mutex
	samples []result.Sample
}

func (c *collector) add(batch []result.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, batch...)
}

func (c *collector) find(name string) []result.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []result.Sample
	for _, s := range c.samples {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func exporter(t *testing.T, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestScrapeLabelsAndTime(t *testing.T) {
	address := exporter(t, `# TYPE node_disk_reads_completed_total counter
node_disk_reads_completed_total{device="sdb",vm="liar"} 42 1700000000000
node_disk_reads_completed_total{device="sdc"} 7
go_goroutines 12
`)
	var c collector
	s := metric.Scraper{Now: func() int64 { return 5e9 }, Sink: c.add, Keep: metric.Keep(nil)}
	s.Set([]metric.Exporter{metric.VMExporter(address, "g", "g-0001", "node-1")})
	s.Once(context.Background())
	reads := c.find("node_disk_reads_completed_total")
	if len(reads) != 2 || reads[0].Value != 42 || reads[0].AtNanos != 5e9 {
		t.Fatalf("reads: %+v", reads)
	}
	l := reads[0].Labels
	if l["vm"] != "g-0001" || l["exported_vm"] != "liar" || l["node"] != "node-1" || l["vm_group"] != "g" || l["device"] != "sdb" {
		t.Errorf("labels: %v", l)
	}
	if up := c.find("up"); len(up) != 1 || up[0].Value != 1 || up[0].Labels["port"] == "" {
		t.Errorf("up: %+v", up)
	}
	if got := c.find("go_goroutines"); got != nil {
		t.Errorf("an unwanted metric was kept: %+v", got)
	}
}

func TestScrapeOfDeadExporter(t *testing.T) {
	for name, body := range map[string]string{"garbage": "<html>not metrics {", "huge": strings.Repeat("a", 17<<20)} {
		t.Run(name, func(t *testing.T) {
			var c collector
			s := metric.Scraper{Now: func() int64 { return 1 }, Sink: c.add}
			s.Set([]metric.Exporter{{Address: exporter(t, body)}})
			s.Once(context.Background())
			if up := c.find("up"); len(up) != 1 || up[0].Value != 0 || len(c.samples) != 2 {
				t.Errorf("samples: %+v", c.samples)
			}
		})
	}
}

// An address that swallows what is sent to it must not use up the time in which the other way can be tried.
// The time limit of a scrape passes here, beside other tests.
func TestScrapeBehindAFirewall(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and no process answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	e := metric.VMExporter(silent.Addr().String(), "g", "g-0001", "node-1")
	e.Fetch = func(ctx context.Context) ([]byte, error) { return []byte("a 1\n"), ctx.Err() }
	var c collector
	s := metric.Scraper{Now: func() int64 { return 1 }, Sink: c.add}
	s.Set([]metric.Exporter{e})
	s.Once(t.Context())
	if up := c.find("up"); len(up) != 1 || up[0].Value != 1 || len(c.find("a")) != 1 {
		t.Errorf("samples: %+v", c.samples)
	}
}

func TestScrapeRunEndsClean(t *testing.T) {
	address := exporter(t, "a 1\n")
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var c collector
	var now atomic.Int64
	s := metric.Scraper{Interval: time.Millisecond, Now: func() int64 { return now.Add(1e9) }, Sink: c.add}
	s.Set([]metric.Exporter{{Address: address}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	for len(c.find("a")) < 3 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
}

func TestKeep(t *testing.T) {
	keep := metric.Keep([]string{`sum(irate(node_netstat_Tcp_RetransSegs{__curie_filter_scenario__}[30s]))`})
	for name, want := range map[string]bool{
		"node_netstat_Tcp_RetransSegs": true, "node_disk_reads_completed_total": true, "node_arp_entries": false,
		"pg_stat_database_xact_commit": true, "process_cpu_seconds_total": false,
	} {
		if keep(name) != want {
			t.Errorf("keep(%s) = %v", name, !want)
		}
	}
	if keep := metric.Keep([]string{`{__name__=~"go_.*"}`}); !keep("go_goroutines") {
		t.Error("a pattern of names keeps everything")
	}
}
