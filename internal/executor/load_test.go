package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

func TestStaggerSpreadsOverGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4)
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 100, stagger_secs: 30, async: True}
  - test.Wait: {duration_secs: 200}
`, nil)
		if outcome.Ended != executor.Completed {
			t.Fatal(outcome)
		}
		first := l.Began[0]
		for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second} {
			if got := l.Began[i].Sub(first); got != want {
				t.Errorf("VM %d began after %v, want %v: n VMs have n−1 gaps", i, got, want)
			}
		}
		// The step itself returns only when the last VM was started.
		for _, e := range l.Events {
			if e.Kind == interval.EventStepEnded && e.Step == "workload.Start" {
				if took := time.Duration(e.AtNanos) - time.Duration(startOf(l, "workload.Start").AtNanos); took != 30*time.Second {
					t.Errorf("an async start with stagger took %v, want 30 s", took)
				}
			}
		}
	})
}

func startOf(l *lab, step string) interval.Event {
	for _, e := range l.Events {
		if e.Kind == interval.EventStepStarted && e.Step == step {
			return e
		}
	}
	return interval.Event{}
}

func TestPrefillIsBoundedAndSharesItsDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4)
		text := strings.Replace(plannertest.Head, "count_per_node: 1", "count_per_node: 5", 1)
		outcome := l.run(text+strings.Replace(plannertest.Deployed, "setup:", "setup:", 1)+`  - workload.PrefillRun: {workload_name: Load}
run:
  - test.Wait: {duration_secs: 1}
`, nil)
		if outcome.Ended != executor.Completed {
			t.Fatal(outcome)
		}
		if l.Peak != 8 || len(l.Loads) != 20 {
			t.Errorf("%d VMs prefilled, %d at a time; want 20, 8 at a time", len(l.Loads), l.Peak)
		}
		for _, w := range l.Loads {
			// Eight VMs at a time on four nodes are two per node, which share four writes in flight.
			if !w.Prefill || w.Runtime != 0 || w.Options[verb.OptionPrefillDepth] != "2" {
				t.Fatalf("prefill %+v", w)
			}
		}
	})
}

func TestWorkloadCarriesWhatItsVMNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 5}
  - workload.Start: {workload_name: Load, runtime_secs: 5, seed: abc}
  - workload.Start: {workload_name: Other, runtime_secs: 5, seed: abc}
`, nil)
		if len(l.Loads) != 6 {
			t.Fatalf("%d loads", len(l.Loads))
		}
		w := l.Loads[0]
		if w.VM != "Workers-0001" && w.VM != "Workers-0002" || w.Group != "Workers" || w.ConfigName != "load.fio" ||
			!strings.Contains(w.Config, "/dev/sdb") || len(w.Devices) != 2 || w.Devices[1].Name != "/dev/sdc" ||
			w.Runtime != 5*time.Second || w.ZeroUnixNanos == 0 || w.Instance != 1 {
			t.Errorf("workload %+v", w)
		}
		if w.Seed != 7 || l.Loads[2].Seed == 7 || l.Loads[2].Seed != l.Loads[4].Seed {
			t.Errorf("seeds %d, %d, %d: without one the run's holds, equal texts give equal seeds", w.Seed, l.Loads[2].Seed, l.Loads[4].Seed)
		}
		if l.Loads[2].Instance != 2 || l.Loads[4].Instance != 1 {
			t.Errorf("instances %d and %d, want 2 for the second start and 1 for the other workload", l.Loads[2].Instance, l.Loads[4].Instance)
		}
	})
}

// A VM that this run powers off under its load is annotated and no failure.
func TestLossByOurOwnHandIsExpected(t *testing.T) {
	for name, cut := range map[string]string{
		"node":     "nodes.PowerOff: {nodes: 1}",
		"shutdown": "nodes.Shutdown: {nodes: 1}",
		"group":    "vm_group.PowerOff: {vm_group_name: Workers}",
		"clean-up": "cluster.CleanUp: {}",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 60, async: True}
  - test.Wait: {duration_secs: 5}
  - `+cut+`
  - workload.Wait: {workload_name: Load}
`, nil)
				if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 || len(outcome.Left) > 0 {
					t.Errorf("outcome %+v", outcome)
				}
				if !slices.ContainsFunc(l.Messages(interval.EventAnnotation), func(m string) bool {
					return strings.Contains(m, "load lost on Workers-0002 (powered off by this run)")
				}) {
					t.Errorf("annotations %q", l.Messages(interval.EventAnnotation))
				}
				if !slices.ContainsFunc(l.Events, func(e interval.Event) bool { return e.CutByRun && e.Subject == "Workers-0002" }) {
					t.Error("no event is marked as a cut by the run")
				}
				l.MustBeClean()
			})
		})
	}
}

// A VM that goes away for any other reason fails the step, once the others have ended.
func TestForeignLossFailsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		engine := l.engine(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 60}
  - test.Wait: {duration_secs: 100}
`, nil)
		go func() {
			time.Sleep(10 * time.Second)
			left, _ := control.RecoverRun(l.Runs, "r1")
			vms, _ := l.Fake.Owned(t.Context(), left.Header.Tag)
			_ = l.Fake.PowerOffVMs(t.Context(), left.Header.Tag, vms[1:])
		}()
		began := time.Now()
		outcome, _ := engine.Run(t.Context())
		want := `workload.Start: run workload "Load" on 1 of 2 VMs (Workers-0002): run Load: agent lost`
		if outcome.Ended != executor.Failed || outcome.Reason != want {
			t.Errorf("ended %s because of %q, want %q", outcome.Ended, outcome.Reason, want)
		}
		if took := time.Since(began); took < 60*time.Second || took > 70*time.Second {
			t.Errorf("took %v: the other VM has to run to its end, the wait after it must not begin", took)
		}
		l.MustBeClean()
	})
}

// With restart, a load goes on for the rest of its runtime on a VM that comes back, whether the run had cut its power or not.
func TestLoadStartsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		cut, restart string
		foreign      bool // the VM is cut from outside
		back         time.Duration
		want         []time.Duration // runtimes of the load on the second VM
		failed       bool
	}{
		"after a cut by the run": {cut: "nodes.PowerOff: {nodes: 1}", restart: "True", back: 30 * time.Second, want: []time.Duration{60, 28}},
		"after another cut":      {cut: "test.Wait: {duration_secs: 1}", restart: "True", foreign: true, back: 30 * time.Second, want: []time.Duration{60, 28}},
		"not unless it says so":  {cut: "nodes.PowerOff: {nodes: 1}", restart: "False", back: 30 * time.Second, want: []time.Duration{60}},
		"too late":               {cut: "nodes.PowerOff: {nodes: 1}", restart: "True", back: 70 * time.Second, want: []time.Duration{60}},
		"never back, another cut": {cut: "test.Wait: {duration_secs: 1}", restart: "True", foreign: true, back: time.Hour,
			want: []time.Duration{60}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				engine := l.engine(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 60, restart: `+c.restart+`, async: True}
  - test.Wait: {duration_secs: 5}
  - `+c.cut+`
  - workload.Wait: {workload_name: Load}
`, nil)
				go func() {
					for len(l.Messages(interval.EventWorkloadStart)) == 0 {
						time.Sleep(time.Second)
					}
					left, _ := control.RecoverRun(l.Runs, "r1")
					vms, _ := l.Fake.Owned(t.Context(), left.Header.Tag)
					if time.Sleep(7 * time.Second); c.foreign {
						_ = l.Fake.PowerOffVMs(t.Context(), left.Header.Tag, vms[1:])
					}
					if c.back > time.Minute {
						return // the run has ended by then
					}
					time.Sleep(c.back - 7*time.Second)
					l.Fake.Stray("Workers-0002", "node-1")
					vms[1].NodeID = "node-1"
					if err := l.Fake.PowerOnVMs(t.Context(), left.Header.Tag, vms[1:]); err != nil {
						t.Error(err)
					}
				}()
				outcome, _ := engine.Run(t.Context())
				if (outcome.Ended != executor.Completed) != c.failed {
					t.Errorf("ended %s because of %q", outcome.Ended, outcome.Reason)
				}
				var got []time.Duration
				for _, w := range l.Loads {
					if w.VM == "Workers-0002" {
						got = append(got, w.Runtime.Round(time.Second)/time.Second)
						if w.Instance != 1 {
							t.Errorf("started as instance %d", w.Instance)
						}
					}
				}
				if len(got) != len(c.want) || len(got) == 2 && (got[1] > 30 || got[1] < 26) {
					t.Errorf("on the second VM it ran for %d s, want about %d", got, c.want)
				}
				l.MustBeClean()
			})
		})
	}
}

// The hint of a load that cannot start is in the reason and in the events, and a refusal for safety is reported as one, also where no
// step waits for the load.
func TestRefusedLoadHasItsHint(t *testing.T) {
	for name, step := range map[string]string{
		"awaited": `  - workload.Start: {workload_name: Load, runtime_secs: 60}
`, "in the background": `  - workload.Start: {workload_name: Load, runtime_secs: 60, async: True}
  - test.Wait: {duration_secs: 100}
`} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 2)
			l.LoadErr = func(load.Workload) error {
				return &diag.Error{Code: "foreign", Message: "the disk holds data of others", Hint: "clear it first", Exit: diag.ExitRefused}
			}
			outcome := l.run(plannertest.Head+plannertest.Deployed+"run:\n"+step, nil)
			if outcome.Ended != executor.Failed || !outcome.Refused || !strings.HasSuffix(outcome.Reason, "the disk holds data of others; clear it first") {
				t.Errorf("%s: %+v", name, outcome)
			}
			for _, kind := range []interval.EventKind{interval.EventDisturbance, interval.EventWorkloadEnd} {
				if !slices.ContainsFunc(l.Events, func(e interval.Event) bool {
					return e.Kind == kind && strings.HasSuffix(e.Error, "clear it first")
				}) {
					t.Errorf("%s: no %s has the hint", name, kind)
				}
			}
			l.MustBeClean()
		})
	}
}

// A load that fails on all its VMs ends the run phase at once, even if no step waits for it yet.
func TestTotalFailureEndsThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.LoadErr = func(load.Workload) error { return errors.New("EIO") }
		began := time.Now()
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 10, async: True}
  - test.Wait: {duration_secs: 1000}
  - workload.Wait: {workload_name: Load}
`, nil)
		if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, "on 2 of 2 VMs") {
			t.Errorf("outcome %+v", outcome)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		l.MustBeClean()
	})
}

func TestWaitTimesOut(t *testing.T) {
	cases := map[string]struct {
		steps string
		want  time.Duration
	}{
		"sync with runtime: runtime and 300 s":         {"workload.Start: {workload_name: Load, runtime_secs: 10}", 310 * time.Second},
		"sync with timeout: runtime and timeout":       {"workload.Start: {workload_name: Load, runtime_secs: 10, timeout_secs: 7}", 17 * time.Second},
		"stagger counts":                               {"workload.Start: {workload_name: Load, runtime_secs: 10, timeout_secs: 7, stagger_secs: 5}", 22 * time.Second},
		"without a runtime the timeout is all":         {"workload.Start: {workload_name: Load, timeout_secs: 40}", 40 * time.Second},
		"without anything 300 s":                       {"workload.Start: {workload_name: Load}", 300 * time.Second},
		"a later wait counts from the expected finish": {"workload.Start: {workload_name: Load, runtime_secs: 10, async: True}\n  - test.Wait: {duration_secs: 4}\n  - workload.Wait: {workload_name: Load, timeout_secs: 7}", 17 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				engine := l.engine(plannertest.Head+plannertest.Deployed+"run:\n  - "+c.steps+"\n", func(cfg *executor.Config) {
					cfg.Runner = endless(l)
				})
				outcome, _ := engine.Run(t.Context())
				if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, "has not ended in time") {
					t.Fatalf("outcome %+v", outcome)
				}
				if got := failedAfter(l); got != c.want {
					t.Errorf("gave up %v after the start, want %v", got, c.want)
				}
				l.MustBeClean()
			})
		})
	}
}

// endless returns runners whose loads end only when they are stopped.
func endless(l *lab) func(context.Context, target.VM) (load.Runner, error) {
	return func(ctx context.Context, vm target.VM) (load.Runner, error) {
		inner, err := l.Runner(ctx, vm)
		if err != nil {
			return nil, err
		}
		return runnerFunc(func(ctx context.Context, w load.Workload, sink load.Sink) error {
			w.Runtime = 1000 * time.Hour
			return inner.Run(ctx, w, sink)
		}), nil
	}
}

type runnerFunc func(context.Context, load.Workload, load.Sink) error

func (f runnerFunc) Run(ctx context.Context, w load.Workload, s load.Sink) error { return f(ctx, w, s) }

// failedAfter returns the time from the first load's start to the first failed step's end.
func failedAfter(l *lab) time.Duration {
	var start int64
	for _, e := range l.Events {
		if e.Kind == interval.EventWorkloadStart && start == 0 {
			start = e.AtNanos
		}
		if e.Kind == interval.EventStepEnded && e.Error != "" {
			return time.Duration(e.AtNanos - start)
		}
	}
	return -1
}

func TestStopEndsALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.Stubborn = 3 * time.Second
		began := time.Now()
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 1000, async: True}
  - test.Wait: {duration_secs: 10}
  - workload.Stop: {workload_name: Load}
  - test.Wait: {duration_secs: 1}
`, nil)
		if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
			t.Errorf("outcome %+v", outcome)
		}
		if took := time.Since(began); took < 14*time.Second || took > 20*time.Second {
			t.Errorf("took %v: Stop waits for the last interval", took)
		}
	})
}

func TestStartNeedsAllVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - nodes.PowerOff: {nodes: 1}
  - workload.Start: {workload_name: Load, runtime_secs: 10}
`, nil)
		if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, `start workload "Load" on 1 of 3 VMs (Workers-0002)`) {
			t.Errorf("outcome %+v", outcome)
		}
		if len(l.Loads) > 0 {
			t.Errorf("%d VMs got the load although one cannot be reached", len(l.Loads))
		}
		l.MustBeClean()
	})
}

func TestPlanShowsTheDepthOfThePrefill(t *testing.T) {
	for _, c := range []struct {
		nodes, perNode int
		step           string
		want           string
	}{
		{2, 1, "workload.PrefillRun: {workload_name: Load}", "4"},
		{2, 2, "workload.PrefillRun: {workload_name: Load}", "2"},
		{2, 8, "workload.PrefillRun: {workload_name: Load}", "1"},
		{2, 8, "workload.PrefillRun: {workload_name: Load, max_concurrent: 2}", "4"},
		{2, 8, "workload.PrefillStart: {workload_name: Load}", "4"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, c.nodes)
			text := strings.Replace(plannertest.Head, "count_per_node: 1", fmt.Sprintf("count_per_node: %d", c.perNode), 1) + plannertest.Deployed +
				"  - " + c.step + "\nrun:\n  - test.Wait: {duration_secs: 1}\n"
			plan := l.Plan(plannertest.Load(t, text), planner.Options{})
			if got := plan.Workloads[0].Prefill.Notes; len(got) != 1 || got[0] != "depth "+c.want {
				t.Errorf("%s on %d VMs per node: planned with %q, want a depth of %s", c.step, c.perNode, got, c.want)
			}
			l.run(text, nil)
			if got := l.Loads[0].Options[verb.OptionPrefillDepth]; got != c.want {
				t.Errorf("%s on %d VMs per node: run with a depth of %s, want %s", c.step, c.perNode, got, c.want)
			}
			ranks := map[int]bool{}
			for _, w := range l.Loads {
				if ranks[w.Remote.Rank] = true; w.Remote.VMs != c.nodes*c.perNode {
					t.Errorf("%s: one of %d VMs runs a prefill of %d", w.VM, c.nodes*c.perNode, w.Remote.VMs)
				}
			}
			if len(ranks) != c.nodes*c.perNode {
				t.Errorf("ranks %v", ranks)
			}
		})
	}
}
