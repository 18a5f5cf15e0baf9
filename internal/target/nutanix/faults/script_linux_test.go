package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// powered is a copy of tiny whose hosts keep their power: BMCs take long.
func powered(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(tiny)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "test.yml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, regexp.MustCompile(`(?m)^  - nodes\..*\n      .*\n`).ReplaceAll(text, nil), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whole runs pass over what Prism does to single requests, and end with its words where a task fails late. Nothing is left of either.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs of a scenario, on agents")
	}
	testreq.Root(t)
	t.Parallel()
	const vms = "/api/vmm/*/ahv/config/vms"
	for name, c := range map[string]struct {
		rules []faults.Rule
		fails string // what the bundle says; "": the run completes
	}{
		"busy": {rules: []faults.Rule{
			{Request: "POST " + vms, Status: 429, RetryAfter: time.Second, Times: 1},
			{Request: "GET " + vms, Status: 503, RetryAfter: time.Second, Skip: 1, Times: 1},
			{Request: "POST " + vms + "/*/$actions/*", Status: 412, Times: 2},
			{Request: "POST " + vms, Drop: true, Times: 1},
			{Request: "GET /api/prism/*/config/tasks/*", ExpireSessions: true, Skip: 2, Times: 1},
		}},
		"late": {rules: []faults.Rule{{Task: "VmPowerOn", After: 400 * time.Millisecond, Fail: "InternalException: acropolis restarted"}}, fails: "acropolis restarted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, false)
			r.Faults.Add(c.rules...)
			o := order{File: r.file, Runs: filepath.Join(r.dir, "runs"), Scenario: powered(t)}
			p, err := prepare(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			out, err := p.Run(t.Context(), session.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprintf("%+v", out)
			// Any verdict will do: a load of a moment stalls on a busy machine.
			if c.fails == "" && out.Ended != result.EndedCompleted || !strings.Contains(out.Reason, c.fails) || len(out.Left) > 0 {
				t.Errorf("the run ended with %s", said)
			}
			r.checkSecrets(t, o.Runs, said)
			r.checkLeft(t)
		})
	}
}
