package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/knee"
	"github.com/braggdev/bragg/internal/result"
)

// ratedScenario is the tiny scenario with a rate of 100 IOPS.
func ratedScenario(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, change := range map[string]func(string) string{
		"mixed.fio": func(text string) string { return strings.Replace(text, "iodepth=", "rate_iops=100\niodepth=", 1) },
		"test.yml":  strings.Clone,
	} {
		text, err := os.ReadFile(filepath.Join(tinyScenario, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := change(string(text))
		if name == "mixed.fio" && changed == string(text) {
			t.Fatal("the job file of the tiny scenario has no iodepth")
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The search runs the scenario at other rates, and says what it found. Only thresholds that every machine meets, or none, are used.
func TestFindKnee(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a scenario four times")
	}
	t.Parallel()
	for threshold, want := range map[string]struct {
		exit   int
		kind   knee.Kind
		factor float64
	}{
		"median < 3600s": {diag.ExitUndecided, knee.AlwaysMet, 2},
		"median < 1ns":   {diag.ExitFailed, knee.NeverMet, 0.5},
	} {
		t.Run(threshold, func(t *testing.T) {
			t.Parallel()
			runs := filepath.Join(t.TempDir(), "runs")
			said := mustRun(t, want.exit, append(tinyArguments(runs, ratedScenario(t)), "--find-knee", threshold, "--knee-runs", "2", "--json")...)
			var got struct {
				Threshold, Sentence string
				knee.Answer
			}
			if err := json.Unmarshal([]byte(said[max(0, strings.Index(said, "{")):]), &got); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if got.Kind != want.kind || got.Factor != want.factor || len(got.Runs) != 2 || got.Threshold != threshold || got.Sentence == "" {
				t.Errorf("%+v", got)
			}
			// Every operation of the schedule is due, however slow the machine is: twice the rate, twice the operations.
			if ratio := got.Runs[1].Rate / got.Runs[0].Rate / want.factor; ratio < 0.7 || ratio > 1.4 {
				t.Errorf("the rates are %v and %v", got.Runs[0].Rate, got.Runs[1].Rate)
			}
			if all, err := result.List(runs); err != nil || len(all) != 2 {
				t.Errorf("%d bundles, %v", len(all), err)
			}
		})
	}
}
