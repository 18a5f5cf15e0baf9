package session_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest/simdb"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// The environment of a child that dies at a failpoint of a run, or of cleaning.
const (
	dieAt       = "BRAGG_TEST_DIE_AT"
	dieRuns     = "BRAGG_TEST_DIE_RUNS"
	dieScenario = "BRAGG_TEST_DIE_SCENARIO"
	dieTarget   = "BRAGG_TEST_DIE_TARGET"
)

// generators are those of this program, and one that does no I/O.
func generators() load.Kinds { return append(session.Catalog().Generators, simdb.Kind) }

// TestMain lets the test binary act as an agent, and as a program that dies at a failpoint.
func TestMain(m *testing.M) {
	labtest.Main()
	if len(os.Args) > 2 && os.Args[1] == "__agent" {
		os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{
			Generators: generators().ByName(), Version: "test", Stderr: os.Stderr, Failpoint: agentFailpoint(),
		}))
	}
	if os.Getenv(session.AgentsVariable) != "" {
		session.ServeSimulatedAgents()
		os.Exit(0)
	}
	if len(os.Args) > 1 && (os.Args[1] == hostvm.Verb || strings.HasPrefix(os.Args[1], "{")) {
		os.Exit(onHost(os.Args[1:]))
	}
	if os.Getenv(racerVariable) != "" {
		os.Exit(race())
	}
	if at := os.Getenv(dieAt); at != "" {
		os.Exit(dying(at, os.Getenv(dieRuns), os.Getenv(dieScenario)))
	}
	testreq.Waiting(8) // for load that runs for a while
	code := m.Run()
	if hostAgentDir != "" {
		_ = os.RemoveAll(hostAgentDir)
	}
	os.Exit(code)
}

func dying(at, runs, folder string) int {
	die := func(name string) error {
		if name == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	}
	var err error
	if strings.HasPrefix(at, "recover.") {
		_, err = session.Clean(context.Background(), session.Cleaning{Runs: runs, Program: program(runs), Failpoint: die})
	} else {
		var out session.Outcome
		out, err = runFolder(folder, runs, cmp.Or(os.Getenv(dieTarget), "local"), die)
		fmt.Fprintf(os.Stderr, "%+v\n", out) // diagnostics for the parent, which expected this process to die
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// program is this test as the program. The leases of machines are apart for each folder of runs, because tests run side by
// side.
func program(runs string) session.Program {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return session.Program{Version: "test", AgentCommand: []string{self, "__agent"}, AgentDir: os.Getenv(agentDir), Leases: runs}
}

// runTiny runs the scenario that passes nearly every failpoint.
func runTiny(runs, where string, failpoint func(string) error) (session.Outcome, error) {
	return runFolder(tiny, runs, where, failpoint)
}

var tiny = filepath.Join("testdata", "tiny")

// runFolder runs the scenario in a folder, with permission to run programs.
func runFolder(folder, runs, where string, failpoint func(string) error) (session.Outcome, error) {
	ctx := context.Background()
	p, err := session.Prepare(ctx, session.Order{
		Source: scenario.Source{Path: folder, Trusted: true}, Runs: runs, Target: where,
		Plan: planner.Options{FullPercentMax: 100, AllowShell: true}, Program: program(runs),
	})
	if err != nil {
		return session.Outcome{}, err
	}
	defer p.Close()
	return p.Run(ctx, session.RunOptions{Failpoint: failpoint})
}

// allFailpoints are the places of a whole run and of cleaning after one.
func allFailpoints() []string { return append(session.Failpoints(), executor.Failpoints()...) }

// TestEveryFailpointIsPassed keeps the loops below honest: a name that is never passed would test nothing.
func TestEveryFailpointIsPassed(t *testing.T) {
	t.Parallel()
	if len(allFailpoints()) < 30 {
		t.Errorf("only %d failpoints", len(allFailpoints()))
	}
	passed := map[string]bool{}
	var mu sync.Mutex
	note := func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		passed[name] = true
		return nil
	}
	runs := t.TempDir()
	out, err := runTiny(runs, "local", note)
	if err != nil || !unharmed(out) {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	checkClean(t, runs, 1)
	died(t, filepath.Join(t.TempDir(), "died"), "load.started", note)
	for _, name := range passedByAgents(t) {
		note(name)
	}
	all := append(allFailpoints(), agent.Failpoints()...)
	for _, name := range all {
		if !passed[name] {
			t.Errorf("failpoint %q is never passed", name)
		}
	}
	for name := range passed {
		if !slices.Contains(all, name) {
			t.Errorf("failpoint %q is not listed", name)
		}
	}
}

// died lets a child die at a failpoint, then cleans in this process.
func died(t *testing.T, runs, at string, failpoint func(string) error) {
	t.Helper()
	die(t, runs, at)
	cleanAll(t, runs, failpoint)
}

func die(t *testing.T, runs, at string) {
	t.Helper()
	dieOf(t, tiny, runs, at)
}

func dieOf(t *testing.T, folder, runs, at string, environment ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(append(os.Environ(), dieAt+"="+at, dieRuns+"="+runs, dieScenario+"="+folder), environment...)
	text, err := child.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child did not die at %s: %v\n%s", at, err, text)
	}
}

func cleanAll(t *testing.T, runs string, failpoint func(string) error) {
	t.Helper()
	cleaned, err := session.Clean(context.Background(), session.Cleaning{Runs: runs, Program: program(runs), AllowShell: true, Failpoint: failpoint})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cleaned {
		if c.Err != nil || c.Live {
			t.Errorf("clean %s: live %v, %v", c.Run, c.Live, c.Err)
		}
	}
}

// deathsInCI are enough places for each change; "make soak" takes all.
const deathsInCI = 12

// slow are places where the death of an agent shows only after the two minutes that a VM may take to answer.
var slow = []string{"agent.configured", "agent.ready", "agent.hello"}

// TestDeathAtFailpoints kills the program, or an agent, at places chosen by a seed. After the death of the program cleaning ends
// with nothing left and the bundle sealed; after that of an agent the program does that itself.
func TestDeathAtFailpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	places := append(allFailpoints(), agent.Failpoints()...)
	t.Logf("%d places over controller and agent: %s", len(places), strings.Join(places, " "))
	if len(places) < 50 {
		t.Errorf("only %d places", len(places))
	}
	if os.Getenv(failpointsVariable) == "" {
		places = slices.DeleteFunc(places, func(name string) bool { return slices.Contains(slow, name) })
	}
	for _, name := range drawn(t, places, deathsInCI) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := filepath.Join(t.TempDir(), "runs")
			switch {
			case strings.HasPrefix(name, agentPlace):
				agentDies(t, runs, name)
			case strings.HasPrefix(name, "recover."):
				die(t, runs, "load.started")
				fallthrough
			default:
				died(t, runs, name, nil)
			}
			checkClean(t, runs, 1)
			again, err := session.Clean(context.Background(), session.Cleaning{Runs: runs, Program: program(runs)})
			if err != nil || len(again) > 0 {
				t.Errorf("a second clean found %+v, %v", again, err)
			}
		})
	}
}

// drawn returns count of places, or as many as failpointsVariable says, chosen by a seed that is printed.
func drawn(t *testing.T, places []string, count int) []string {
	t.Helper()
	if text := os.Getenv(failpointsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	chosen := slices.Clone(places)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(chosen), func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
	chosen = chosen[:min(count, len(chosen))]
	t.Logf("%s=%d chooses %d of %d places: %s", seedVariable, seed, len(chosen), len(places), strings.Join(chosen, " "))
	return chosen
}

// TestFailureAtEveryFailpoint lets each failpoint fail once, in a program that continues. The run ends sealed by itself,
// or cleaning seals it as aborted.
func TestFailureAtEveryFailpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for _, name := range allFailpoints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := filepath.Join(t.TempDir(), "runs")
			fail := failOnce(name)
			if strings.HasPrefix(name, "recover.") {
				die(t, runs, "load.started")
				if _, err := session.Clean(context.Background(), session.Cleaning{Runs: runs, Program: program(runs), Failpoint: fail}); err != nil {
					t.Error(err)
				}
			} else if out, err := runTiny(runs, "fake:2", fail); err == nil && unharmed(out) != slices.Contains(harmless, name) {
				t.Errorf("the run came out as if it had failed, or as if it had not: %+v", out)
			} else if err != nil && !strings.Contains(err.Error(), errInjected.Error()) {
				t.Errorf("the error does not tell its cause: %v", err)
			}
			cleanAll(t, runs, nil)
			checkClean(t, runs, 1)
		})
	}
}

// unharmed reports whether a run ended as if nothing had failed. The verdict alone is not enough: on a busy machine the
// figures may be doubtful.
func unharmed(o session.Outcome) bool {
	return o.Ended == result.EndedCompleted && len(o.Problems) == 0 && len(o.Left) == 0 &&
		!strings.Contains(o.Reason, "The record is incomplete")
}

// harmless are failpoints that do not affect the result of the run: a record that only helps recovery, or an attempt that
// is retried.
var harmless = []string{"phase.teardown", "run.end", "run.ended", "load.reach"}

var errInjected = errors.New("injected failure")

func failOnce(at string) func(string) error {
	var once sync.Once
	return func(name string) (err error) {
		if name == at {
			once.Do(func() { err = errInjected })
		}
		return err
	}
}

// checkClean checks that no process, lease or file is left except sealed bundles, of which there are at most bundlesMax.
func checkClean(t *testing.T, runs string, bundlesMax int) {
	t.Helper()
	if left := testreq.ProcessesNaming(t, runs); len(left) > 0 {
		t.Errorf("processes are left: %s", left)
	}
	if _, err := os.Stat(runs); errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, name := range []string{"local", "fake"} {
		l, err := control.AcquireLease(runs, name, "test", nil)
		if err != nil {
			t.Errorf("the lease is left: %v", err)
		} else if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	machineIsFree(t, runs)
	all, err := result.List(runs)
	if err != nil || len(all) > bundlesMax {
		t.Errorf("%d bundles, %v", len(all), err)
	}
	for _, l := range all {
		if l.Err != nil || l.State == result.StateRunning {
			t.Errorf("bundle %s: state %s, %v", l.Dir, l.State, l.Err)
		}
	}
	checkFiles(t, runs)
}

// machineIsFree checks that no lease of this machine is left, neither in a program nor with a keeper.
func machineIsFree(t *testing.T, runs string) {
	t.Helper()
	if held, err := lease.Hold(context.Background(), runs, lease.NewHolder("test", 0)); err != nil {
		t.Errorf("the lease of this machine is left: %v", err)
	} else if err := held.Unlock(); err != nil {
		t.Error(err)
	}
}

func checkFiles(t *testing.T, runs string) {
	t.Helper()
	entries, err := os.ReadDir(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		inside, err := os.ReadDir(filepath.Join(runs, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(inside) == 0 {
			t.Errorf("%s is left empty", e.Name())
		}
		for _, f := range inside {
			bundle := slices.Contains([]string{
				"manifest.json", "plan.json", "events.ndjson", "intervals.ndjson.zst", "rollups.ndjson.zst", "samples.ndjson.zst", "summary.json",
				"seal.json", "attachments", "metrics",
			}, f.Name())
			control := e.Name() == ".control" && (f.Name() == "controller" || strings.HasPrefix(f.Name(), "lease-") && !strings.HasSuffix(f.Name(), ".target"))
			if !bundle && !control {
				t.Errorf("%s/%s is left", e.Name(), f.Name())
			}
		}
	}
}
