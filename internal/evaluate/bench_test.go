package evaluate_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/scenario"
)

// synthetic is the scenario of bundles that resulttest makes.
func synthetic() *scenario.Scenario {
	const g = resulttest.Group
	return &scenario.Scenario{Name: "node_failure", Results: []scenario.Result{
		{Name: "Total IOPS", Source: scenario.FromGroup, Group: g, Type: "iops", Aggregate: "sum", ReportMetrics: []string{"Variability"}},
		{Name: "IOPS per VM", Source: scenario.FromGroup, Group: g, Type: "iops"},
		{Name: "Bandwidth", Source: scenario.FromWorkload, Workload: resulttest.Workload, Type: "bandwidth", Aggregate: "sum"},
		{Name: "I/O latency", Source: scenario.FromGroup, Group: g, Type: "latency", Aggregate: "mean"},
		{Name: "Errors", Source: scenario.FromWorkload, Workload: resulttest.Workload, Type: "errors", Aggregate: "sum",
			ReportMetrics: []string{"AnyFail"}},
		{Name: "Active VMs", Source: scenario.FromWorkload, Workload: resulttest.Workload, Type: "active", Aggregate: "sum"},
		{Name: "CPU", Source: scenario.FromMetric, Metric: "CpuUsage.Avg.Megahertz", Aggregate: "sum"},
		{Name: "Network", Source: scenario.FromMetric, Metric: "NetReceived.Avg.KilobytesPerSecond"},
	}}
}

func write(b testing.TB, dir string, p resulttest.Params) *result.Writer {
	b.Helper()
	w, err := result.Create(dir, resulttest.Manifest(p))
	if err != nil {
		b.Fatal(err)
	}
	if err := resulttest.Write(w, p); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil { // waits until the rollups have caught up, which they have in a run
		b.Fatal(err)
	}
	if w, err = result.Continue(dir); err != nil {
		b.Fatal(err)
	}
	return w
}

// BenchmarkSeal evaluates and seals a synthetic bundle, by default of 100 VMs over six minutes; with
// BRAGG_BENCH_FULL=1 of 100 VMs over ten hours, or with BRAGG_BENCH_LENGTH of another length.
func BenchmarkSeal(b *testing.B) {
	p := resulttest.Params{VMs: 100, Duration: 6 * time.Minute}
	if d, err := time.ParseDuration(os.Getenv("BRAGG_BENCH_LENGTH")); err == nil {
		p.Duration = d
	}
	if os.Getenv("BRAGG_BENCH_FULL") != "" {
		p.Duration = 10 * time.Hour
	}
	for b.Loop() {
		b.StopTimer()
		dir := filepath.Join(b.TempDir(), "run")
		begin := time.Now()
		w := write(b, dir, p)
		b.ReportMetric(time.Since(begin).Seconds(), "write-s")
		b.StartTimer()
		begin = time.Now()
		used := cpuSeconds()
		bundle, err := result.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		s, err := evaluate.Run(context.Background(), evaluate.Input{
			Bundle: bundle, Scenario: synthetic(), Ended: result.EndedCompleted,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "evaluate-s")
		b.ReportMetric(cpuSeconds()-used, "evaluate-cpu-s")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapSys)/1e6, "heap-MB")
		begin = time.Now()
		if err := w.Seal(s); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "seal-s")
		for name, unit := range map[string]string{"intervals.ndjson.zst": "intervals-MB", "rollups.ndjson.zst": "rollups-MB", "samples.ndjson.zst": "samples-MB",
			"summary.json": "summary-MB"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				b.ReportMetric(float64(info.Size())/1e6, unit)
			}
		}
		bundle.Close()
		b.StopTimer()
		os.RemoveAll(dir)
		b.StartTimer()
	}
}

// cpuSeconds is the CPU time of this process, which a busy machine does not stretch.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
