package executor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// eventful passes every failpoint of a run.
const eventful = plannertest.Head + plannertest.Deployed + `  - workload.PrefillRun: {workload_name: Load}
  - vm_group.EnableHA: {vm_group_name: Workers}
run:
  - workload.Start: {workload_name: Load, runtime_secs: 30, async: True}
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: Workers, num_snapshots: 2, interval_minutes: 0.05, async: True}
  - test.Wait: {duration_secs: 5}
  - nodes.PowerOff: {nodes: 0}
  - nodes.Shutdown: {nodes: 1, wait_secs: 0}
  - workload.Wait: {workload_name: Load}
  - nodes.PowerOn: {nodes: all}
  - vm_group.PowerOff: {vm_group_name: Workers}
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 2}
  - vm_group.PowerOn: {vm_group_name: Workers}
  - workload.Start: {workload_name: Other, runtime_secs: 30, async: True}
  - workload.Stop: {workload_name: Other}
  - nodes.PowerOff: {nodes: n-1}
teardown:
  - vm_group.PowerOff: {vm_group_name: Workers}
`

func TestEventfulRunLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		outcome := l.run(eventful, nil)
		if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 || len(outcome.Left) > 0 {
			t.Errorf("outcome %+v", outcome)
		}
		l.MustBeClean()
		left, err := control.Recover(l.Runs)
		if err != nil || len(left) > 0 {
			t.Errorf("journals say that %v is left (%v)", left, err)
		}
		// Nodes come first, whatever else is undone.
		ops := l.Operations("PowerOnNode", "Delete", "PowerOffVMs")
		last := slices.Index(ops[slices.Index(ops, "PowerOnNode node-3"):], "PowerOnNode node-3")
		tail := ops[len(ops)-13:]
		if last < 0 || tail[0] != "PowerOnNode node-3" || !strings.HasPrefix(tail[1], "PowerOffVMs") || !strings.HasPrefix(tail[7], "Delete") {
			t.Errorf("the end was %q", tail)
		}
	})
}

// after cancels or fails a run once it has come to an event.
func after(l *lab, kind interval.EventKind, step string, act func()) func(*executor.Config) {
	var once sync.Once
	return func(cfg *executor.Config) {
		cfg.Events = func(e interval.Event) {
			l.Event(e)
			if e.Kind == kind && e.Step == step {
				once.Do(act)
			}
		}
	}
}

const longRun = plannertest.Head + plannertest.Deployed + `run:
  - workload.Start: {workload_name: Load, runtime_secs: 1000, async: True}
  - nodes.PowerOff: {nodes: 0}
  - test.Wait: {duration_secs: 1000}
teardown:
  - test.Wait: {duration_secs: 2}
  - cluster.CleanUp: {}
`

func TestFirstStopUndoes(t *testing.T) {
	for _, how := range []string{"stop", "context", "guard"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var engine *executor.Engine
				engine = l.engine(longRun, after(l, interval.EventStepStarted, "test.Wait", func() {
					switch how {
					case "stop":
						engine.Stop(executor.StopAndUndo)
						engine.Stop(executor.StopAndUndo) // twice the same is once
					case "context":
						cancel()
					case "guard":
						engine.Guard("space ran out: 1 MiB left")
					}
				}))
				began := time.Now()
				outcome, err := engine.Run(ctx)
				want := map[string][2]string{"stop": {executor.Interrupted, "stopped by the user"},
					"context": {executor.Interrupted, "stopped by the user"}, "guard": {executor.Failed, "space ran out: 1 MiB left"}}[how]
				if err != nil || outcome.Ended != want[0] || outcome.Reason != want[1] || len(outcome.Left) > 0 || len(outcome.Problems) > 0 {
					t.Errorf("outcome %+v, %v", outcome, err)
				}
				if why := l.stepErrors("test.Wait"); len(why) == 0 || why[0] != "canceled: "+want[1] {
					t.Errorf("the step that was going on ended with %q", why)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
				ops := l.Operations("PowerOnNode", "Delete")
				if len(ops) == 0 || ops[0] != "PowerOnNode node-1" {
					t.Errorf("undone in the order %q", ops)
				}
				l.MustBeClean()
			})
		})
	}
}

func TestSecondStopLeavesTheRestInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		var engine *executor.Engine
		engine = l.engine(longRun, func(cfg *executor.Config) {
			cfg.Events = func(e interval.Event) {
				l.Event(e)
				if e.Kind == interval.EventStepStarted && e.Step == "test.Wait" {
					// Once in the run phase, once in teardown.
					engine.Stop(map[string]executor.StopLevel{"run": executor.StopAndUndo, "teardown": executor.StopOnly}[e.Phase])
				}
			}
		})
		outcome, err := engine.Run(t.Context())
		if err != nil || outcome.Ended != executor.Interrupted || len(outcome.Left) != 1 || outcome.Left[0].Kind != control.ThingVMs {
			t.Fatalf("outcome %+v, %v", outcome, err)
		}
		if why := l.stepErrors("test.Wait"); !slices.Equal(why, []string{"canceled: stopped by the user", "canceled: cleanup skipped by the user"}) {
			t.Errorf("the waits ended with %q", why)
		}
		left, err := control.Recover(l.Runs)
		if err != nil || len(left) != 1 || !left[0].Abandoned || left[0].Phase != plan.Teardown {
			t.Fatalf("left %+v, %v", left, err)
		}
		l.clean()
	})
}

// clean undoes run "r1" from its journal, and demands that nothing is left and a second time does nothing.
func (l *lab) clean() {
	l.T.Helper()
	c := executor.Cleaner{Runs: l.Runs, Target: l.Fake, Catalog: plannertest.Catalog()}
	if err := c.Undo(context.Background(), "r1"); err != nil {
		l.T.Errorf("clean: %v", err)
	}
	l.MustBeClean()
	before := len(l.Fake.Operations())
	if err := c.Undo(context.Background(), "r1"); err != nil || len(l.Fake.Operations()) != before {
		l.T.Errorf("clean again: %v, %d operations more", err, len(l.Fake.Operations())-before)
	}
	if left, err := control.Recover(l.Runs); err != nil || len(left) > 0 {
		l.T.Errorf("after clean %v is left (%v)", left, err)
	}
	if err := control.RemoveJournal(l.Runs, "r1"); err != nil {
		l.T.Errorf("remove journal: %v", err)
	}
}

func TestHangingLoadIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.Hang = true
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 100000, async: True}
  - test.Wait: {duration_secs: 1}
`, nil)
		if outcome.Ended != executor.Completed || len(outcome.Problems) != 1 || len(outcome.Left) > 0 {
			t.Errorf("outcome %+v", outcome)
		}
		l.MustBeClean()
	})
}

func TestPanicInAStepIsAFailureAndUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - test.Wait: {duration_secs: 1}
`, func(cfg *executor.Config) {
			cfg.Failpoint = func(name string) error {
				if name == "step.after" && len(l.Operations("PowerOnVMs")) > 0 {
					panic("a defect")
				}
				return nil
			}
		})
		if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, "defect in step vm_group.PowerOn: a defect") {
			t.Errorf("outcome %+v", outcome)
		}
		l.MustBeClean()
	})
}

// TestRefusalIsTold: a step that is refused for safety ends the run, and the outcome has this reason.
func TestRefusalIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{"refused": {target.PowerForbidden("node-1"), true}, "failed": {errors.New("out of order"), false}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 2)
			outcome := l.run(plannertest.Head+plannertest.Deployed+"run:\n  - test.Wait: {duration_secs: 1}\n", func(cfg *executor.Config) {
				cfg.Failpoint = func(point string) error {
					if point == "step.after" && len(l.Operations("PowerOnVMs")) > 0 {
						return c.err
					}
					return nil
				}
			})
			if outcome.Ended != executor.Failed || outcome.Refused != c.want {
				t.Errorf("%s: outcome %+v", name, outcome)
			}
			l.MustBeClean()
		})
	}
}

// TestFailpoints fails every named place once, at each of its passes: a run that goes wrong anywhere undoes itself.
func TestFailpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	counts := passes(t)
	known := slices.DeleteFunc(executor.Failpoints(), func(name string) bool {
		area, _, _ := strings.Cut(name, ".")
		return slices.Contains([]string{"recover", "lease", "controller"}, area) // no part of an engine's run
	})
	if visited := slices.Sorted(maps.Keys(counts)); !slices.Equal(visited, slices.Sorted(slices.Values(known))) {
		t.Fatalf("a run passes %q, the list has %q", visited, known)
	}
	if len(executor.Failpoints()) < 30 {
		t.Fatalf("only %d failpoints", len(executor.Failpoints()))
	}
	for _, name := range known {
		for pass := 1; pass <= min(counts[name], 3); pass++ {
			t.Run(fmt.Sprintf("%s-%d", name, pass), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { failAt(t, name, pass) })
			})
		}
	}
}

// passes counts how often an eventful run passes each failpoint.
func passes(t *testing.T) map[string]int {
	counts := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		var mu sync.Mutex
		count := func(name string) error {
			mu.Lock()
			defer mu.Unlock()
			counts[name]++
			return nil
		}
		journal, err := l.Journal(nil, count)
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		l.runWith(eventful, journal, count)
	})
	return counts
}

// runWith runs a scenario with a journal of the caller's.
func (l *lab) runWith(text string, journal *control.Journal, failpoint func(string) error) executor.Outcome {
	l.T.Helper()
	cfg := l.Config()
	cfg.Journal, cfg.Failpoint = journal, failpoint
	engine, err := executor.New(l.planOf(text), cfg)
	if err != nil {
		l.T.Fatal(err)
	}
	outcome, err := engine.Run(l.T.Context())
	if err != nil {
		l.T.Fatal(err)
	}
	return outcome
}

var errInjected = errors.New("injected failure")

// nth returns a failpoint that fails at one pass of one name.
func nth(name string, pass int) func(string) error {
	var mu sync.Mutex
	seen := 0
	return func(at string) error {
		mu.Lock()
		defer mu.Unlock()
		if at != name {
			return nil
		}
		if seen++; seen == pass {
			return errInjected
		}
		return nil
	}
}

func failAt(t *testing.T, name string, pass int) {
	l := newLab(t, 3)
	failpoint := nth(name, pass)
	journal, err := l.Journal(nil, failpoint)
	if err != nil {
		if !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		if left, err := control.Recover(l.Runs); err != nil || len(left) > 0 {
			t.Errorf("a journal that was not created leaves %v (%v)", left, err)
		}
		return
	}
	defer journal.Close()
	outcome := l.runWith(eventful, journal, failpoint)
	if !strings.HasPrefix(name, "run.end") && outcome.Ended == executor.Completed && len(outcome.Problems) == 0 &&
		name != "load.reach" && name != "phase.teardown" {
		t.Errorf("not noticed: %+v", outcome)
	}
	if len(outcome.Left) > 0 { // only changes whose undo was prevented by the failure itself
		if !strings.HasPrefix(name, "undo.") && !strings.HasPrefix(name, "vms.delete") && !strings.HasPrefix(name, "node.") {
			t.Errorf("left %v", outcome.Left)
		}
		l.clean()
		return
	}
	l.MustBeClean()
}

// TestKillAtEveryFailpoint ends the controller at each failpoint: from then on it changes nothing outside and writes
// nothing. Its changes until then are undone from the journal.
func TestKillAtEveryFailpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, count := range passes(t) {
		for pass := 1; pass <= min(count, 3); pass++ {
			t.Run(fmt.Sprintf("%s-%d", name, pass), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { killAt(t, name, pass) })
			})
		}
	}
}

func killAt(t *testing.T, name string, pass int) {
	l := newLab(t, 3)
	var mu sync.Mutex
	dead := false
	files := &faultyFiles{}
	trigger := nth(name, pass)
	die := func(at string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := trigger(at); err != nil {
			dead = true
			files.failFrom(1)
			l.Fake.SetFault(func(fake.Operation) error { return errInjected })
		}
		if dead {
			return errInjected
		}
		return nil
	}
	journal, err := l.Journal(files, die)
	if err == nil {
		l.runWith(eventful, journal, die)
		_ = journal.Close()
	}
	l.Fake.SetFault(nil)
	if _, err := os.Stat(filepath.Join(l.Runs, ".control", "r1.journal")); errors.Is(err, os.ErrNotExist) {
		if ops := l.Fake.Operations(); len(ops) > 0 {
			t.Errorf("without a journal %v was done", ops)
		}
		return
	}
	l.clean()
}

// TestCleanFailsAndGoesOn fails the clean-up itself at each of its failpoints; the next one finishes the job.
func TestCleanFailsAndGoesOn(t *testing.T) {
	names := []string{"recover.read", "recover.undo", "recover.ended", "undo.power", "undo.steps", "undo.vms", "undo.done",
		"node.power-on", "node.powered-on", "vms.delete", "vms.deleted"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				dying := nth("load.started", 1)
				l.runDying(longRun, dying)
				// A BMC call that fails once is retried, so the failure has to last for all attempts.
				fail := func(at string) error {
					if at == name {
						return errInjected
					}
					return nil
				}
				c := executor.Cleaner{Runs: l.Runs, Target: l.Fake, Catalog: plannertest.Catalog(), Failpoint: fail}
				if err := c.Undo(t.Context(), "r1"); !errors.Is(err, errInjected) {
					if name != "node.power-on" && name != "node.powered-on" || err != nil {
						t.Errorf("undo: %v", err)
					}
				}
				l.clean()
			})
		})
	}
}

// runDying runs a scenario whose controller dies when trigger fails.
func (l *lab) runDying(text string, trigger func(string) error) {
	l.T.Helper()
	var mu sync.Mutex
	dead := false
	files := &faultyFiles{}
	journal, err := l.Journal(files, nil)
	if err != nil {
		l.T.Fatal(err)
	}
	defer journal.Close()
	l.runWith(text, journal, func(at string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := trigger(at); err != nil {
			dead = true
			files.failFrom(1)
			l.Fake.SetFault(func(fake.Operation) error { return errInjected })
		}
		if dead {
			return errInjected
		}
		return nil
	})
	l.Fake.SetFault(nil)
}

// A clean-up of run r1 touches nothing of another run on the same target.
func TestCleanTouchesNothingForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		foreign, err := control.NewTag(t.TempDir(), "r1", nil) // the same run id of another controller
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Fake.Create(t.Context(), foreign, []target.VMSpec{{Name: "theirs", Group: "Workers", NodeID: "node-1",
			Template: "ubuntu1604"}}); err != nil {
			t.Fatal(err)
		}
		l.runDying(longRun, nth("load.started", 1))
		l.clean()
		if vms, err := l.Fake.Owned(t.Context(), foreign); err != nil || len(vms) != 1 {
			t.Errorf("the VM of another run is gone: %v, %v", vms, err)
		}
	})
}
