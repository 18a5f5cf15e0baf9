package report_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/session/meter"
	"github.com/braggdev/bragg/internal/target"
)

// pageBytesMax is how large the report of a large run may be.
const pageBytesMax = 5_000_000

// TestPageStaysSmall: the report of many VMs over a long time, with counters of a hypervisor, many results and many events, stays
// under 5 MB. Series of twenty minutes have as many
// points as those of ten hours.
func TestPageStaysSmall(t *testing.T) {
	for _, vms := range []int{40, 100} {
		p := resulttest.Params{VMs: vms, Duration: 18 * time.Minute, IOPS: 20}
		if testing.Short() {
			p.Duration = 5 * time.Minute
		}
		dir := filepath.Join(t.TempDir(), "run")
		w, err := result.Create(dir, resulttest.Manifest(p))
		check(t, err)
		check(t, resulttest.Write(w, p))
		for e := range 60 {
			at := int64(p.Duration) / 70 * int64(e+5)
			step := interval.Event{AtNanos: at, Kind: interval.EventStepStarted, Phase: "run", Step: "vm_group.MigrateGroup", Label: fmt.Sprintf("migration %d", e), StepID: 100 + e}
			check(t, w.Event(step))
			step.AtNanos, step.Kind = at+2e9, interval.EventStepEnded
			check(t, w.Event(step))
		}
		for s := int64(0); s < int64(p.Duration/time.Second); s += 2 {
			var readings []target.VMSample
			for vm := range vms {
				for i, m := range target.VMMetrics() {
					readings = append(readings, target.VMSample{VM: resulttest.VM(vm), Group: resulttest.Group, NodeID: "node-1", Metric: m,
						At: time.Unix(s, 0), Value: float64(i+1) * (1.1234567 + float64((s*7+int64(vm)*13)%101)/9.7)})
				}
			}
			check(t, w.Sample(meter.VMSamples(readings, meter.Axis{Now: time.Unix(s, 0), Nanos: s * 1e9})...))
		}
		check(t, w.Flush())
		bundle, err := result.Open(dir)
		check(t, err)
		s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: bundle, Scenario: benchScenario(), Ended: result.EndedCompleted})
		check(t, err)
		check(t, bundle.Close())
		check(t, w.Seal(s))
		sealed, err := result.Open(dir)
		check(t, err)
		defer sealed.Close()
		run, err := document.Read(sealed)
		check(t, err)
		var html bytes.Buffer
		check(t, page.HTML(&html, run))
		t.Logf("%d VMs: %d bytes, %d results, %d events", vms, html.Len(), len(s.Results), len(s.Impacts))
		if html.Len() > pageBytesMax {
			t.Errorf("%d VMs: the report has %d bytes, want at most %d", vms, html.Len(), pageBytesMax)
		}
	}
}
