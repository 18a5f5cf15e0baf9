package builtin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// TestCheck: a check says which nodes have samples, which values name no node, and which keys of the target file match nothing.
func TestCheck(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "reads_total{host=\"left.lab\"} 5\nreads_total{host=\"right\"} 6 %d\nreads_total{host=\"spare\"} 1\npool_size 7\n", time.Now().UnixMilli())
	}))
	defer exporter.Close()
	of := func(s target.Source) target.Source {
		s.Name, s.URL = "array", exporter.URL
		if s.Kind == "" {
			s.Kind = target.SourcePrometheus
		}
		return s
	}
	nodes := []target.Node{{ID: "n1", Name: "left"}, {ID: "n2", Name: "right"}}
	for what, c := range map[string]struct {
		source  target.Source
		line    string // of the plan
		answer  string
		warning string
	}{
		"label": {of(target.Source{NodeLabel: "host"}), "reads all metrics; nodes: by label host; VMs: not mapped",
			"4 samples of 2 metrics, newest less than 1 s old; nodes left and right; not nodes of this target: spare", ""},
		"node": {of(target.Source{Node: "left"}), "reads all metrics; nodes: all of left; VMs: not mapped", "4 samples of 2 metrics, newest less than 1 s old; nodes left", ""},
		"another node": {of(target.Source{Node: "lefd"}), "reads all metrics; nodes: all of lefd; VMs: not mapped",
			"4 samples of 2 metrics, newest less than 1 s old; not nodes of this target: lefd", `source "array": no sample belongs to a node of this target (found: lefd)`},
		"nothing mapped": {of(target.Source{}), "reads all metrics; nodes: not mapped; VMs: not mapped", "4 samples of 2 metrics, newest less than 1 s old", ""},
		"no effect": {of(target.Source{NodeLabel: "instance", VMLabel: "domain", Keep: []string{"pool_*", "pools_*", "reads_total"}, Rename: map[string]string{"reads_total": "reads", "x": "y"}}),
			"reads metrics pool_*, pools_*, reads_total; nodes: by label instance; VMs: by label domain",
			"4 samples of 2 metrics, newest less than 1 s old; no effect: keep: no metric pools_*, node_label: no sample has the label instance, rename: no metric x and vm_label: no sample has the label domain",
			`source "array": no effect: keep: no metric pools_*; node_label`},
		"charts": {of(target.Source{Node: "left", Keep: []string{"pool_*"}, Charts: []target.SourceChart{{Title: "r", Query: "rate(reads_total[$__rate_interval])"}, {Title: "w", Query: "writes_total"}}}),
			"reads metrics pool_*; nodes: all of left; VMs: not mapped", `4 samples of 2 metrics, newest less than 1 s old; nodes left; no effect: chart "w": no metric of its query`, `no effect: chart "w"`},
		"other kind": {of(target.Source{Kind: target.SourceCeph}), "reads metrics of ceph; nodes: not mapped; VMs: not mapped", "0 samples of 0 metrics",
			`source "array": it answers, but has none of the metrics that are read (metrics of ceph)`},
		"silent": {func() target.Source { s := of(target.Source{}); s.URL = "http://127.0.0.1:1/"; return s }(), "reads all metrics; nodes: by label node; VMs: by label vm",
			`source "array": dial tcp 127.0.0.1:1`, `source "array": dial tcp`},
	} {
		sources, problems := builtin.Check(t.Context(), &target.Config{Sources: []target.Source{c.source}}, nodes)
		var text strings.Builder
		if err := (&plan.Plan{Sources: sources}).WriteText(&text, plan.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "    "+c.line+"\n    now: "+c.answer) {
			t.Errorf("%s: got\n%s\nwant\n%s\n%s", what, text.String(), c.line, c.answer)
		}
		warned := ""
		for _, p := range problems {
			warned += p.Message
		}
		if warned == "" != (c.warning == "") || !strings.Contains(warned, c.warning) {
			t.Errorf("%s: warned of %q, want %q", what, warned, c.warning)
		}
	}
}

// TestChartsOfPlans: a query that is not PromQL is a warning of the plan.
func TestChartsOfPlans(t *testing.T) {
	var p plan.Plan
	builtin.List(&target.Config{File: "t.yml", Sources: []target.Source{{Name: "s", Kind: target.SourceCeph, URL: "http://h", Charts: []target.SourceChart{
		{Title: "good", Query: "rate(a[$__rate_interval])"}, {Title: "bad", Query: "rate(a[5s)"}, {Title: "range", Query: "a[5s]"}}}}}, &p)
	if len(p.Sources) != 1 || len(p.Warnings) != 2 || !strings.HasPrefix(p.Warnings[0].Message, `source "s": chart "bad": `) || !strings.Contains(p.Warnings[1].Message, "range vector") {
		t.Errorf("got %+v, %v", p.Sources, p.Warnings)
	}
}
