package report_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"

	"github.com/chromedp/chromedp"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/scenario"
)

// benchSize is 100 VMs over ten hours; BRAGG_BENCH_VMS and BRAGG_BENCH_DURATION ask for less.
func benchSize(b *testing.B) resulttest.Params {
	b.Helper()
	p := resulttest.Params{VMs: 100, Duration: 10 * time.Hour}
	var err error
	if text := os.Getenv("BRAGG_BENCH_VMS"); text != "" {
		if p.VMs, err = strconv.Atoi(text); err != nil || p.VMs < 1 {
			b.Fatalf("BRAGG_BENCH_VMS is %q, want a number of VMs", text)
		}
	}
	if text := os.Getenv("BRAGG_BENCH_DURATION"); text != "" {
		if p.Duration, err = time.ParseDuration(text); err != nil || p.Duration < 10*time.Second {
			b.Fatalf("BRAGG_BENCH_DURATION is %q, want a duration of at least 10s", text)
		}
	}
	return p
}

// BenchmarkReport goes once from the record of a large run to its drawn report and prints what every part takes. It
// ends at the goals only in print: other work on the machine stretches times.
func BenchmarkReport(b *testing.B) {
	p := benchSize(b)
	dir := filepath.Join(b.TempDir(), "run")
	begin, used := time.Now(), cpuSeconds()
	row := func(what, goal string) {
		fmt.Printf("%-34s %10.2f s  %8.2f s CPU  %6d MB peak   %s\n", what, time.Since(begin).Seconds(), cpuSeconds()-used, peakMegabytes(), goal)
		begin, used = time.Now(), cpuSeconds()
	}
	fmt.Printf("\n%d VMs over %s\n", p.VMs, p.Duration)
	w, err := result.Create(dir, resulttest.Manifest(p))
	check(b, err)
	check(b, resulttest.Write(w, p))
	check(b, w.Close())
	row("write the record (not of interest)", "")
	bundle, err := result.Open(dir)
	check(b, err)
	s, err := evaluate.Run(context.Background(), evaluate.Input{
		Bundle: bundle, Scenario: benchScenario(), Ended: result.EndedCompleted})
	check(b, err)
	row("evaluate", "goal: under 6 s on two processors that do nothing else")
	check(b, bundle.Close())
	w, err = result.Continue(dir)
	check(b, err)
	row("open again (not of interest)", "")
	check(b, w.Seal(s))
	row("seal", "")
	sealed, err := result.Open(dir)
	check(b, err)
	b.Cleanup(func() { sealed.Close() })
	run, err := document.Read(sealed)
	check(b, err)
	var html bytes.Buffer
	check(b, page.HTML(&html, run))
	row("sealed bundle to HTML", "goal: under 5 s")
	for _, name := range []string{"intervals.ndjson.zst", "rollups.ndjson.zst", "summary.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			fmt.Printf("%-34s %10.2f MB\n", name, float64(info.Size())/1e6)
		}
	}
	fmt.Printf("%-34s %10.2f MB  goal: under 5 MB\n", "HTML", float64(html.Len())/1e6)
	b.Run("Draw", func(b *testing.B) { paint(b, html.Bytes()) })
}

// paint measures from the navigation until the page is loaded and a frame behind it is painted.
func paint(b *testing.B, html []byte) {
	path := filepath.Join(b.TempDir(), "report.html")
	check(b, os.WriteFile(path, html, 0o600))
	page := open(b)
	check(b, chromedp.Do(page, chromedp.EmulateViewport(1200, 800)))
	begin := time.Now()
	check(b, chromedp.Do(page, chromedp.Navigate("file://"+path)))
	eval[int](b, page, `requestAnimationFrame(() => requestAnimationFrame(() => { window.painted = true; }))`)
	for !eval[bool](b, page, `window.painted === true`) {
		if time.Since(begin) > time.Minute {
			b.Fatal("no frame is painted within a minute")
		}
		time.Sleep(time.Millisecond)
	}
	elapsed := time.Since(begin)
	if n := eval[int](b, page, `document.querySelectorAll('canvas, svg').length`); n == 0 {
		b.Fatal("the page has no chart")
	}
	fmt.Printf("%-34s %10.2f s   goal: under 3 s\n", "draw in Chromium", elapsed.Seconds())
}

// cpuSeconds is the CPU time of this process, which a busy machine does not stretch.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// peakMegabytes is the most memory that the process had since the last call; 0 if the system does not say.
func peakMegabytes() (peak int64) {
	text, _ := os.ReadFile("/proc/self/status")
	if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
		_, _ = fmt.Sscan(after, &peak)
	}
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return peak / 1000
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func benchScenario() *scenario.Scenario {
	const g = resulttest.Group
	return &scenario.Scenario{Name: "node_failure", Results: []scenario.Result{
		{Name: "Total IOPS", Source: scenario.FromGroup, Group: g, Type: "iops", Aggregate: "sum"},
		{Name: "IOPS per VM", Source: scenario.FromGroup, Group: g, Type: "iops"},
		{Name: "Bandwidth", Source: scenario.FromWorkload, Workload: resulttest.Workload, Type: "bandwidth", Aggregate: "sum"},
		{Name: "I/O latency", Source: scenario.FromGroup, Group: g, Type: "latency", Aggregate: "mean"},
		{Name: "Latency per VM", Source: scenario.FromGroup, Group: g, Type: "latency"},
		{Name: "Errors", Source: scenario.FromWorkload, Workload: resulttest.Workload, Type: "errors", Aggregate: "sum"},
		{Name: "CPU", Source: scenario.FromMetric, Metric: "CpuUsage.Avg.Megahertz", Aggregate: "sum"},
	}}
}
