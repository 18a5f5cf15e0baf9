package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
)

const secondNanos = int64(1e9)

// demoSummary is a run of the demo's scenario: alone from 1 to 21, with the neighbor to 32, killed at 36, back at 40. The
// database's mean response time is 1 ms, beside the neighbor 8 ms, and 5 ms in the first two seconds after the restart.
func demoSummary() *result.Summary {
	load := func(name string, from, to int64) result.LoadSummary {
		return result.LoadSummary{Workload: name, FromNanos: from * secondNanos, ToNanos: to * secondNanos}
	}
	window := func(name string, from, to int64) result.Window {
		return result.Window{Name: name, FromNanos: from * secondNanos, ToNanos: to * secondNanos}
	}
	stats := func(name, kind string, mean, p50, p99 result.Number) result.Stats {
		return result.Stats{Window: name, Kind: kind, Count: 20000, Distribution: result.Distribution{Mean: mean, Median: p50, P99: p99}}
	}
	s := &result.Summary{
		Verdict: result.Pass, Reason: "Completed; the threshold was met.", Validity: result.Valid, ValidityReason: "The audit has no warnings.",
		Loads:   []result.LoadSummary{{Workload: demoDatabase, Prefill: true}, load(demoDatabase, 1, 35), load(demoNeighbor, 21, 32), load(demoDatabase, 40, 54)},
		Windows: []result.Window{window("alone", 1, 21), window("beside", 21, 32), window("quiet", 32, 36), window("off", 36, 39), window("on", 39, 40), window("back", 40, 54)},
	}
	s.Loads[2].Total = interval.Traffic{Operations: 11000, Bytes: 11e9}
	latency := result.Evaluated{Name: "Database Response Time", Type: "latency", Checks: []result.Check{{Passed: true}},
		Stats: []result.Stats{stats("alone", "response", 1e6, 1e6, 2e6), stats("beside", "response", 8e6, 5e6, 20e6)}}
	mean := result.Series{Kind: "response", Statistic: "mean"}
	for t := 1; t < 54; t++ {
		v := 1e6
		switch {
		case t >= 36 && t < 40:
			continue
		case t >= 21 && t < 32:
			v = 8e6
		case t == 40 || t == 41:
			v = 5e6
		}
		mean.Points = append(mean.Points, result.Point{Seconds: float64(t) + 0.5, Value: v})
	}
	latency.Series = []result.Series{mean}
	iops := result.Evaluated{Name: "Database IOPS", Type: "iops", Stats: []result.Stats{stats("alone", "", 1000, 0, 0), stats("beside", "", 990, 0, 0)}}
	s.Results = []result.Evaluated{latency, iops}
	return s
}

func TestDemoAnswers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := demoBrief(&out, &document.Run{Summary: *demoSummary()}); err != nil {
		t.Fatal(err)
	}
	want := `  baseline  1k IOPS; response time p50 1 ms, p99 2 ms (20 s, 20k operations)
  neighbor  p50 1 ms → 5 ms (5.0×), p99 2 ms → 20 ms (10.0×), 990 IOPS, while the neighbor read 1 GB/s (11 s)
  outage    VM killed at 36 s: no I/O for 4.0 s, 3.0 s of it before the scenario started the VM again; response time back at baseline 2.5 s after the restart
  numbers   PASS, valid: Completed; the threshold was met. The audit has no warnings.
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// A run that was stopped early, or disturbed, says so in place of figures.
func TestDemoAnswersOfARunCutShort(t *testing.T) {
	t.Parallel()
	s := demoSummary()
	s.Loads, s.Windows = s.Loads[:2], s.Windows[:1]
	s.Verdict, s.Validity, s.ValidityReason = result.Undecided, result.Qualified, "The generator lacked CPU time."
	story := readDemo(s)
	for what, got := range map[string]string{"baseline": story.baseline(), "neighbor": story.neighbor(), "outage": story.outage()} {
		if got != demoNotReached {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got, want := story.validity(), "UNDECIDED, qualified: The generator lacked CPU time."; got != want {
		t.Errorf("numbers: %q, want %q", got, want)
	}
	late := demoSummary()
	for i := range late.Results[0].Series[0].Points {
		if p := &late.Results[0].Series[0].Points[i]; p.Seconds > 40 {
			p.Value = 5e6
		}
	}
	if got := readDemo(late).outage(); !strings.Contains(got, "not back at baseline within 14.0 s") {
		t.Errorf("a database that stays slow: %q", got)
	}
}

// Calibration leaves nothing behind, also where it cannot measure.
func TestCalibrationLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out strings.Builder
	p := &console.Process{Stdout: &out, Stderr: &out, Directory: dir, Getenv: func(string) string { return "" }}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := calibrateDemo(ctx, p, &out, dir)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var told *diag.Error
	if !errors.As(err, &told) {
		t.Errorf("a cancelled calibration: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := calibrateDemo(context.Background(), p, &out, file); err == nil {
		t.Error("a runs folder that is a file was calibrated")
	}
}

// The demo of a machine that is slow or busy has shown what it shows; one that was interrupted has not.
func TestDemoThatRanIsASuccess(t *testing.T) {
	t.Parallel()
	completed := session.Outcome{Ended: result.EndedCompleted, Verdict: result.Failed, Exit: diag.ExitFailed}
	failed := completed
	failed.Ended = result.EndedFailed
	left := completed
	left.Left = []string{"a disk"}
	for want, ran := range map[bool][]ranRun{true: {{Outcome: completed}}, false: {{Outcome: failed}, {Outcome: left}, {Outcome: completed, Error: "no bundle"}}} {
		for _, r := range ran {
			if got := shown(&r); got != want {
				t.Errorf("%+v: %v", r, got)
			}
		}
	}
}

// A demo that is refused before it starts a run does not name commands that report or repeat the run.
func TestRefusedDemoNamesNoNextStep(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	p := &console.Process{Name: "bragg", Stdout: &out, Stderr: &errs, Directory: t.TempDir(), Getenv: func(string) string { return "" }}
	full := order{target: "local", seed: seedDefault, maxFull: 1e-6, runs: p.Directory}
	err := runAll(context.Background(), p, &full, queue{words: []string{demoScenario}, brief: demoBrief, next: demoNext, shows: true})
	if err == nil || !strings.Contains(errs.String(), "the storage would be") {
		t.Fatalf("a demo on a full storage: %v, %s", err, &errs)
	}
	if strings.Contains(out.String(), "Next:") {
		t.Errorf("a refused demo printed\n%s", &out)
	}
}
