package cli_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// busyScenario does within about four seconds most of what changes something outside: it deploys, prefills, runs load,
// takes a snapshot, cuts a node's power and grows.
const busyScenario = "testdata/scenario/busy"

// killFractions are the moments of the kills, as parts of the length of a run. They lie closer where more happens.
var killFractions = []float64{
	0.001, 0.005, 0.01, 0.015, 0.02, 0.03, 0.045, 0.06, 0.1, 0.17,
	0.25, 0.33, 0.41, 0.5, 0.58, 0.66, 0.75, 0.83, 0.92, 0.99,
}

// TestKilledRunsAreCleaned kills the program at twenty moments of a rehearsal. After bragg clean no process, no file
// and no lease is left, and what had been recorded can be reported.
func TestKilledRunsAreCleaned(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	begun := time.Now()
	mustRun(t, 0, "run", busyScenario, "--rehearse", "2s", "--rehearse-size", "32MiB", "--runs", t.TempDir())
	length := time.Since(begun)
	for _, fraction := range killFractions {
		t.Run(fmt.Sprint(fraction), func(t *testing.T) {
			t.Parallel()
			killAndClean(t, time.Duration(fraction*float64(length)))
		})
	}
}

func killAndClean(t *testing.T, after time.Duration) {
	runs := filepath.Join(t.TempDir(), "runs")
	b := startBragg(t, nil, "run", busyScenario, "--rehearse", "2s", "--rehearse-size", "32MiB", "--runs", runs)
	time.Sleep(after)
	if err := b.Process.Signal(syscall.SIGKILL); err != nil {
		t.Logf("the run ended before it was killed: %v", err)
	}
	_ = b.exitCode(t)
	said := mustRun(t, 0, "clean", "--runs", runs)
	checkNothingLeft(t, runs, said)
	if said := mustRun(t, 0, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
		t.Errorf("a second clean found something: %s", said)
	}
	reportSealed(t, runs)
}

// checkNothingLeft looks for whatever a run leaves beside its bundle.
func checkNothingLeft(t *testing.T, runs, said string) {
	t.Helper()
	if left := testreq.ProcessesNaming(t, runs); len(left) > 0 {
		t.Errorf("processes are left: %s\n%s", left, said)
	}
	lease, err := control.AcquireLease(runs, "local", "test", nil)
	if err != nil {
		t.Errorf("the lease is left: %v\n%s", err, said)
	} else if err := lease.Release(); err != nil {
		t.Error(err)
	}
	for _, name := range filesOf(t, runs) {
		if !expectedFile(name) {
			t.Errorf("%s is left\n%s", name, said)
		}
	}
}

// filesOf lists files and empty folders below dir.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			entries, err := os.ReadDir(path)
			if err != nil || len(entries) > 0 {
				return err
			}
			name += "/"
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// expectedFile reports whether a file may stay after clean: the controller's identity, the lease with its fencing number,
// and bundles.
func expectedFile(name string) bool {
	if dir, file := filepath.Split(name); dir == ".control/" {
		return file == "controller" || file == "lease-local"
	}
	_, inRun, ok := strings.Cut(name, "/")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(inRun, "/")
	return slices.Contains([]string{
		"manifest.json", "plan.json", "events.ndjson", "intervals.ndjson.zst", "rollups.ndjson.zst", "samples.ndjson.zst", "summary.json",
		"seal.json", "attachments", "metrics", "report.html",
	}, first)
}

// reportSealed wants every bundle sealed and reportable.
func reportSealed(t *testing.T, runs string) {
	t.Helper()
	all, err := result.List(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.State == result.StateRunning || l.Err != nil {
			t.Errorf("%s: state %s, %v", l.Dir, l.State, l.Err)
			continue
		}
		b, err := result.Open(l.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.VerifySeal(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if l.State == result.StateAborted {
			mustRun(t, 3, "report", "last", "--runs", runs)
		}
	}
}
