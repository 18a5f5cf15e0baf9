package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// TestCores: the CPU time that a generator takes to start does not load cores, and no load has more cores than there are.
func TestCores(t *testing.T) {
	load := func(length, cpu time.Duration) result.LoadSummary {
		return result.LoadSummary{Workload: "F", Group: "g", VMs: 2, ToNanos: length.Nanoseconds(), CPUNanos: cpu.Nanoseconds()}
	}
	local := result.Manifest{Target: result.TargetInfo{Provider: "local"}, Environment: map[string]string{"cpus": "2"}}
	cases := []struct {
		name     string
		manifest result.Manifest
		plan     string
		load     result.LoadSummary
		cores    float64
		cell     string
	}{
		{"too short", local, "", load(73*time.Millisecond, 236*time.Millisecond), math.NaN(), " –"},
		{"long enough", local, "", load(500*time.Millisecond, 250*time.Millisecond), 0.5, " 0.50"},
		{"more than the machine has", local, "", load(time.Second, 3*time.Second), 3, " 3 of 2 (!)"},
		{"as many as the VMs have", result.Manifest{}, `{"groups":[{"name":"g","vcpus":2}]}`, load(time.Second, 4*time.Second), 4, " 4"},
		{"more than the VMs have", result.Manifest{}, `{"groups":[{"name":"g","vcpus":1}]}`, load(time.Second, 3*time.Second), 3, " 3 of 2 (!)"},
		{"number of cores unknown", result.Manifest{}, "", load(time.Second, 3*time.Second), 3, " 3"},
	}
	for _, c := range cases {
		run := &document.Run{Manifest: c.manifest, Plan: []byte(c.plan), Summary: result.Summary{Loads: []result.LoadSummary{c.load}}}
		w := document.Build(run).Workloads[0]
		if got := float64(w.CPUCores); got != c.cores && !(math.IsNaN(got) && math.IsNaN(c.cores)) {
			t.Errorf("%s: %v cores, want %v", c.name, got, c.cores)
		}
		var b bytes.Buffer
		if err := report.Terminal(&b, run, 200, false); err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(b.String(), "CPU cores\n")
		if row, _, _ := strings.Cut(table, "\n"); !strings.HasPrefix(row, "F ") || !strings.HasSuffix(row, c.cell) {
			t.Errorf("%s: %q does not end with %q", c.name, row, c.cell)
		}
	}
}
