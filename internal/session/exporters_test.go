package session

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// TestOnlyWhatIsAskedOfAnExporterIsRecorded: a node_exporter has a thousand series.
func TestOnlyWhatIsAskedOfAnExporterIsRecorded(t *testing.T) {
	s := &scenario.Scenario{Results: []scenario.Result{{Type: "iops"}, {Type: "generic", Query: "sum(node_load15)"}}}
	x := newExporters(&plan.Plan{}, s.Queries(), nil, &recorder{})
	for name, want := range map[string]bool{
		"node_load15": true, "node_load5": false, "node_disk_reads_completed_total": true, "mysql_up": true,
	} {
		if got := x.scraper.Keep(name); got != want {
			t.Errorf("%s: recorded %t, want %t", name, got, want)
		}
	}
}

// TestEverythingOfAnAgentIsRecorded: our own agents export few metrics, and each may be needed later.
func TestEverythingOfAnAgentIsRecorded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "node_load15 2\nnode_uname_info{simulated=\"true\"} 1\n")
	}))
	defer server.Close()
	x := newExporters(&plan.Plan{}, nil, nil, &recorder{})
	recorded := map[string]bool{}
	x.scraper.Now = func() int64 { return 0 }
	x.scraper.Sink = func(samples []result.Sample) {
		for _, s := range samples {
			recorded[s.Name] = true
		}
	}
	x.Answered(target.VM{Name: "a", Group: "g"}, pool.Answer{Hello: wire.Hello{MetricsAddress: strings.TrimPrefix(server.URL, "http://")}})
	x.scraper.Once(context.Background())
	if !recorded["node_load15"] || !recorded["node_uname_info"] {
		t.Errorf("recorded only %v", recorded)
	}
}
