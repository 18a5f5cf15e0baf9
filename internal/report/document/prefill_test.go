package document_test

import (
	"math"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// The prefill of a database counts no operations: what it did not count is not 0.
func TestPrefillWithoutOperations(t *testing.T) {
	engines := []interval.Engine{{Name: "pgbench", Operations: []string{"tpcb-like"}}}
	gauges := []result.GaugeStats{{Gauge: interval.Gauge{Name: "WAL", Unit: "MB/s"}, Mean: result.Number(math.NaN()), Min: result.Number(math.NaN()), Max: result.Number(math.NaN())}}
	row := func(w document.Workload) []string {
		w.Name, w.VMs, w.ToNanos, w.Engines, w.Gauges = "DB", 1, 2e9, engines, gauges
		return document.WorkloadTable(&document.Document{Workloads: []document.Workload{w}}).Rows[0]
	}
	if got := row(document.Workload{Prefill: true}); got[5] != "–" || got[7] != "–" || got[9] != "–" {
		t.Errorf("prefill: %q", got)
	}
	if got := row(document.Workload{}); got[5] != "0" || got[9] != "0" {
		t.Errorf("load: %q", got)
	}
	if got := row(document.Workload{Prefill: true, Operations: 5}); got[5] != "5" || got[9] != "0" {
		t.Errorf("prefill with operations: %q", got)
	}
	if fill := (&document.Workload{Prefill: true, Gauges: gauges}); len(fill.GaugeTexts()) != 0 {
		t.Errorf("gauges of a prefill: %q", fill.GaugeTexts())
	}
	if !slices.Equal((&document.Workload{Gauges: gauges}).GaugeTexts(), []string{"WAL: mean –, from – to –"}) {
		t.Error("gauges of a load")
	}
}
