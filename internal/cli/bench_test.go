package cli_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// BenchmarkFirstIO measures the time from starting `bragg run four_corners` to the first operation on a disk, on the
// local target, and prints the median and the longest. BRAGG_BINARY names a built program; without it the test binary
// replaces it, which is larger and slower to start.
func BenchmarkFirstIO(b *testing.B) {
	program := os.Getenv("BRAGG_BINARY")
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			b.Fatal(err)
		}
	}
	var taken []float64
	for b.Loop() {
		taken = append(taken, firstIO(b, program).Seconds()*1000)
	}
	slices.Sort(taken)
	b.ReportMetric(0, "ns/op") // a run is stopped after its first I/O, so its length says nothing
	b.ReportMetric(taken[len(taken)/2], "ms-to-first-io")
	b.ReportMetric(taken[len(taken)-1], "ms-longest")
}

// firstIO runs until load goes on, stops the run, and returns when its first interval began.
func firstIO(b *testing.B, program string) time.Duration {
	b.Helper()
	runs := filepath.Join(b.TempDir(), "runs")
	begun := time.Now()
	run := exec.Command(program, "run", "four_corners", "--rehearse", "20s", "--rehearse-size", "64MiB", "--max-full", "100", "--runs", runs)
	run.Env = append(os.Environ(), runAsBragg+"=1")
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	for !workloadBegan(runs) {
		if time.Since(begun) > hangGuard {
			b.Fatal("no load began")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := run.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	_ = run.Wait() // ends with 130
	all, err := result.List(runs)
	if err != nil || len(all) != 1 {
		b.Fatalf("%d runs, %v", len(all), err)
	}
	bundle, err := result.Open(all[0].Dir)
	if err != nil {
		b.Fatal(err)
	}
	defer bundle.Close()
	first := int64(math.MaxInt64)
	for iv, err := range bundle.Intervals() {
		if err != nil {
			b.Fatal(err)
		}
		first = min(first, iv.StartNanos)
	}
	if first == math.MaxInt64 {
		b.Fatal("no interval was recorded")
	}
	return all[0].Manifest.Created.Sub(begun) + time.Duration(first)
}

func workloadBegan(runs string) bool {
	all, err := result.List(runs)
	if err != nil || len(all) == 0 {
		return false
	}
	bundle, err := result.Open(all[0].Dir)
	if err != nil {
		return false
	}
	defer bundle.Close()
	for e, err := range bundle.Events() {
		if err == nil && e.Kind == interval.EventWorkloadEnd {
			return true
		}
	}
	return false
}
