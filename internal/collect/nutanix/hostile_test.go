package nutanix_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/nutanix"
	"github.com/braggdev/bragg/internal/target"
)

// pretender answers like Prism, with what no Prism has.
type pretender struct {
	answer func(w http.ResponseWriter, r *http.Request)

	mu    sync.Mutex
	paths map[string]int
}

func (p *pretender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.paths[r.URL.EscapedPath()]++
	p.mu.Unlock()
	p.answer(w, r)
}

// collected reads a pretender once.
func collected(t *testing.T, p *pretender) (collect.Reading, error) {
	t.Helper()
	p.paths = map[string]int{}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	c, err := nutanix.Open(t.Context(), collect.Options{User: "viewer", Secret: secret,
		Source: target.Source{Name: "prism", Kind: target.SourceNutanix, URL: server.URL, Fingerprint: hex.EncodeToString(sum[:]), Interval: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.Collect(t.Context())
}

// Identities of objects cannot change the path of a request, and lists end.
func TestHostileObjects(t *testing.T) {
	const id = `../../../../../api/evil?x=`
	hosts := strings.TrimSuffix(strings.Repeat(`{"hostName":"h"},`, 20_000), ",")
	p := &pretender{answer: func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodOptions:
			_, _ = fmt.Fprint(w, `{"data":"v4.2"}`)
		case strings.HasSuffix(r.URL.Path, "/config/hosts"):
			_, _ = fmt.Fprintf(w, `{"data":[%s],"metadata":{"totalAvailableResults":1000000000}}`, hosts)
		case strings.HasSuffix(r.URL.Path, "/config/vms"), strings.HasSuffix(r.URL.Path, "/config/clusters"), strings.HasSuffix(r.URL.Path, "/config/storage-containers"):
			_, _ = fmt.Fprintf(w, `{"data":[{"extId":%q,"name":"OLTP-0001","powerState":"ON","disks":[{"extId":%q,"diskAddress":{"busType":"SCSI"}}]}],"metadata":{"totalAvailableResults":1}}`, id, id)
		default:
			_, _ = fmt.Fprint(w, `{"data":{}}`)
		}
	}}
	if _, err := collected(t, p); err != nil {
		t.Fatal(err)
	}
	for path, n := range p.paths {
		if strings.HasPrefix(path, "/api/evil") || strings.HasSuffix(path, "/config/hosts") && n > 1 {
			t.Errorf("%d requests for %q", n, path)
		}
	}
}

// Invalid numbers are left out.
func TestHostileStatistics(t *testing.T) {
	p := &pretender{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, `{"entities":[{"name":"host-a","vmName":"OLTP-0001","stats":{"controller_num_read_iops":"NaN","controller_num_write_iops":"+Inf",
			"controller_read_io_bandwidth_kBps":"1e999","controller_avg_read_io_latency_usecs":"-Inf","hypervisor_cpu_usage_ppm":"250000"}}]}`)
	}}
	r, err := collected(t, p)
	if err != nil || len(r.Samples) == 0 {
		t.Fatalf("got %d samples, %v", len(r.Samples), err)
	}
	for _, s := range r.Samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			t.Errorf("got %+v", s)
		}
	}
}
