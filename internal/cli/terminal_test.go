package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/result"
)

// sealedRun writes a small sealed run into a runs folder of the test and returns that folder.
func sealedRun(t *testing.T, id string) string {
	t.Helper()
	runs := t.TempDir()
	w, err := result.Create(filepath.Join(runs, id), result.Manifest{
		Run: id, Created: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), Seed: 7, Scenario: result.ScenarioInfo{Name: "four_corners"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Seal(result.Summary{Verdict: result.Pass, Reason: strings.Repeat("every threshold holds, ", 10), Ended: "completed", Duration: 90e9})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestEnvironmentOfTheTerminal holds the variables that programs on terminals honour.
func TestEnvironmentOfTheTerminal(t *testing.T) {
	runs := sealedRun(t, "20250301-1200-aaaa")
	output := func(columns int, arguments []string, environment ...string) string {
		t.Helper()
		var out, faults bytes.Buffer
		code := cli.Main(context.Background(), console.Process{
			Arguments: arguments, Directory: t.TempDir(),
			Getenv: func(name string) string {
				for _, e := range environment {
					if value, ok := strings.CutPrefix(e, name+"="); ok {
						return value
					}
				}
				return ""
			},
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &faults, Terminal: true,
			Size: func() (int, int) { return columns, 40 },
		})
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, faults.String())
		}
		return out.String()
	}
	report := func(columns int, environment ...string) string {
		t.Helper()
		return output(columns, []string{"report", "last", "--format", "terminal", "--runs", runs}, environment...)
	}
	widest := func(text string) int {
		most := 0
		for line := range strings.Lines(text) {
			most = max(most, len([]rune(strings.TrimRight(line, "\n"))))
		}
		return most
	}
	if text := report(120, "TERM=xterm-256color"); !strings.Contains(text, "\x1b[") {
		t.Error("a terminal gets no colours")
	}
	for _, environment := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if text := report(120, environment); strings.Contains(text, "\x1b") {
			t.Errorf("with %s the report has escape codes", environment)
		}
	}
	if text := report(120, "NO_COLOR="); !strings.Contains(text, "\x1b[") {
		t.Error("an empty NO_COLOR takes the colours away")
	}
	wide, narrow := widest(report(120, "NO_COLOR=1")), widest(report(120, "NO_COLOR=1", "COLUMNS=60"))
	if wide <= 60 || narrow > 60 {
		t.Errorf("the widest line has %d columns, and %d with COLUMNS=60", wide, narrow)
	}
	for _, words := range []string{"scenarios", "lint --rules", "lint --rules read-without-data", "scenarios node_failure"} {
		text := output(60, strings.Fields(words))
		if got := widest(text); got > 60 {
			t.Errorf("%s: the widest line has %d of 60 columns:\n%s", words, got, text)
		}
	}
	for _, nonsense := range []string{"COLUMNS=-3", "COLUMNS=many", "COLUMNS=0"} {
		if got := widest(report(120, "NO_COLOR=1", nonsense)); got != wide {
			t.Errorf("with %s the widest line has %d columns, want %d", nonsense, got, wide)
		}
	}
}
