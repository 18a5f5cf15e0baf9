package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// tinyScenario is done in about three seconds and expects nothing.
var tinyScenario = filepath.Join("testdata", "scenario", "tiny")

// failingScenario writes a scenario whose threshold cannot be met.
func failingScenario(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, change := range map[string]func(string) string{
		"mixed.fio": strings.Clone,
		"test.yml": func(text string) string {
			return strings.Replace(text, "      result_type: iops\n",
				"      result_type: iops\n      expect: mean >= 1e12\n", 1)
		},
	} {
		text, err := os.ReadFile(filepath.Join(tinyScenario, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func tinyArguments(runs string, words ...string) []string {
	return append(append([]string{"run"}, words...), "--rehearse", "3s", "--rehearse-size", "32MiB", "--max-full", "100", "--runs", runs)
}

func TestQueueGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	words := []string{tinyScenario, failingScenario(t), filepath.Join(t.TempDir(), "missing"), tinyScenario}
	said := mustRun(t, diag.ExitFailed, append(tinyArguments(runs, words...), "--json")...)
	from := strings.Index(said, "[") // complaints about the missing one come before
	var outcomes []struct {
		Scenario string
		Verdict  result.Verdict
		Error    string
		Exit     int
	}
	if from < 0 || json.Unmarshal([]byte(said[from:]), &outcomes) != nil || len(outcomes) != len(words) {
		t.Fatalf("outcomes: %s", said)
	}
	for i, o := range outcomes {
		if o.Scenario != words[i] {
			t.Errorf("outcome %d is of %q, want %q", i, o.Scenario, words[i])
		}
	}
	if o := outcomes[1]; o.Verdict != result.Failed || o.Exit != diag.ExitFailed {
		t.Errorf("the second: %+v", o)
	}
	if o := outcomes[2]; o.Error == "" || o.Exit == diag.ExitPass {
		t.Errorf("the missing one: %+v", o)
	}
	if o := outcomes[3]; o.Error != "" || o.Verdict == result.Failed {
		t.Errorf("the last: %+v", o)
	}
	all, err := result.List(runs)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d bundles, %v", len(all), err)
	}
	for _, r := range all {
		if s := summaryOf(t, r.Dir); r.State != result.StateSealed || s.Ended != result.EndedCompleted {
			t.Errorf("%s is %s, ended %s: %s", r.Dir, r.State, s.Ended, s.Reason)
		}
	}
}

func TestRunWithFio(t *testing.T) {
	if testing.Short() {
		t.Skip("runs fio for seconds")
	}
	fio := testreq.Program(t, "fio")
	t.Parallel()
	version, err := exec.Command(fio, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(strings.TrimSpace(string(version)), "fio-")
	runs := filepath.Join(t.TempDir(), "runs")
	dir := tinyRun(t, runs, nil, "--engine", "fio")
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := b.Manifest()
	if got := m.Versions["fio"]; got != want {
		t.Errorf("the manifest names fio %q, want %q", got, want)
	}
	// What fio cannot tell, such as stalls between its reports, follows its version.
	if got := m.Engines["Mixed"].String(); !strings.HasPrefix(got, "fio "+want+"; ") {
		t.Errorf("engine %q in the manifest", got)
	}
	for _, l := range summaryOf(t, dir).Loads {
		if !strings.HasPrefix(interval.EngineText(l.Engines), "fio "+want+"; ") || l.Total.Operations == 0 {
			t.Errorf("%s: engine %q, %d operations", l.Workload, l.Engines, l.Total.Operations)
		}
	}
}

// tinyRun runs the tiny scenario to its end and returns its sealed bundle.
func tinyRun(t *testing.T, runs string, change func(*exec.Cmd), more ...string) string {
	t.Helper()
	b := startBragg(t, change, append(tinyArguments(runs, tinyScenario), more...)...)
	code := b.exitCode(t)
	all, err := result.List(runs)
	if err != nil || len(all) != 1 || all[0].State != result.StateSealed {
		t.Fatalf("exit code %d, bundles %+v, %v\n%s", code, all, err, b.out.String())
	}
	if s := summaryOf(t, all[0].Dir); s.Ended != result.EndedCompleted {
		t.Fatalf("ended %s: %s\n%s", s.Ended, s.Reason, b.out.String())
	}
	return all[0].Dir
}

func TestEngineAsItCameOut(t *testing.T) {
	t.Parallel()
	const refused = "native libaio (io_uring refused: BRAGG_IO_URING=off)"
	runs := filepath.Join(t.TempDir(), "runs")
	dir := tinyRun(t, runs, func(c *exec.Cmd) { c.Env = append(c.Env, agentsWithoutRing+"=1") })
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if planned := b.Manifest().Engines["Mixed"].String(); planned != "native io_uring" {
		testreq.Skip(t, "needs io_uring; planned is "+planned)
	}
	var told int
	for e, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != interval.EventEngine {
			continue
		}
		told++
		if e.Workload != "Mixed" || e.Instance != 1 || e.Subject == "" || !strings.HasPrefix(e.Engine.String(), refused) || !strings.Contains(e.Message, "io_uring refused") {
			t.Errorf("event %+v", e)
		}
	}
	s := summaryOf(t, dir)
	if len(s.Loads) != 1 || !strings.HasPrefix(interval.EngineText(s.Loads[0].Engines), refused) || told != s.Loads[0].VMs {
		t.Errorf("%d events, loads %+v", told, s.Loads)
	}
	fell := false
	for _, f := range s.Findings {
		fell = fell || f.Code == "engine-fallback" && strings.Contains(f.Claim, refused)
	}
	if !fell {
		t.Errorf("no engine-fallback in %+v", s.Findings)
	}
	if _, said, _ := inProcess(t, "report", dir); !strings.Contains(said, refused) {
		t.Errorf("the report does not name the engine:\n%s", said)
	}
}
