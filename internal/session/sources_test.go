package session_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

// A run records what its sources count, reports those that do not answer, and contains no credential of them.
func TestSources(t *testing.T) {
	const secret = "hunter2-of-ceph"
	t.Setenv("CEPH_TOKEN", secret)
	var count atomic.Int64
	exporter := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "who is this?", http.StatusUnauthorized)
			return
		}
		n := count.Add(100)
		fmt.Fprintf(w, "ceph_osd_op_r{ceph_daemon=\"osd.0\",host=\"node-1\"} %d\nceph_osd_op_w{host=\"node-9\"} 1\n", n)
	}))
	defer exporter.Close()
	sum := sha256.Sum256(exporter.Certificate().Raw)
	port, end := session.NodeExporter(t)
	defer end()
	runs := t.TempDir()
	file := filepath.Join(t.TempDir(), "target.yml")
	text := fmt.Sprintf(`
provider: local
credentials: {ceph: {secret: {env: CEPH_TOKEN}}, wrong: {secret: {command: [printf, wrong-secret]}}}
sources:
  - {name: ceph, kind: ceph, url: %q, credential: ceph, fingerprint: %q, interval: 1s, node_label: host}
  - {name: host, kind: node_exporter, url: "http://127.0.0.1:%d/metrics", interval: 1s, node: node-2}
  - {name: locked, kind: ceph, url: %q, credential: wrong, tls: unverified, interval: 1s}
`, exporter.URL+"/metrics", hex.EncodeToString(sum[:]), port, exporter.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: tiny, Trusted: true}, Runs: runs, Target: file, Plan: planner.Options{FullPercentMax: 100, AllowShell: true}, Program: program(runs),
	})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.Run(t.Context(), session.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(outcome.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	found, ofHost := 0, 0
	for s, err := range b.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		if labels, _ := json.Marshal(s.Labels); s.Name == "ceph_osd_op_r" && string(labels) == `{"ceph_daemon":"osd.0","host":"node-1","node":"node-1","source":"ceph"}` {
			found++
		}
		if s.Name == "node_cpu_seconds_total" && s.Labels["source"] == "host" && s.Labels["node"] == "node-2" {
			ofHost++
		}
	}
	if sources := b.Manifest().Target.Sources; found == 0 || ofHost == 0 || len(sources) != 3 || sources[2].TLS != "unverified" || sources[0].IntervalNanos != 1e9 {
		t.Errorf("%d and %d samples, sources %+v", found, ofHost, sources)
	}
	summary, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	silent := ""
	for _, f := range summary.Findings {
		if f.Code == "source-silent" {
			silent += f.Claim
		}
	}
	if want := `Source locked could not be read from 0:00 to the end of the run: source "locked": 401 Unauthorized: who is this?; check the user and the secret of the source, and whether the account is locked.`; silent != want {
		t.Errorf("got %q, want %q", silent, want)
	}
	err = filepath.WalkDir(runs, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), secret) || strings.Contains(string(content), "wrong-secret") {
			t.Errorf("%s contains a credential", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
