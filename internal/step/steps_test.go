package step_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

const begin = `name: lab
display_name: Lab
summary: A scenario of the tests
description: Nothing to see
tags: [test]
estimated_runtime: 60
vms:
  - A:
      template: ubuntu1604
      data_disks: {count: 1, size: 1}
      count_per_node: 1
  - B:
      template: ubuntu1604
      data_disks: {count: 1, size: 1}
      nodes: "1:"
      count_per_cluster: 1
workloads:
  - Load:
      vm_group: A
      config_file: load.fio
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A, power_on: True}
  - vm_group.CloneFromTemplate: {vm_group_name: B}
`

// play runs phases on three fake nodes and returns the lab for questions.
func play(t *testing.T, phases string, change func(*executor.Config, *target.Inventory)) (*lab, executor.Outcome) {
	t.Helper()
	l := newLab(t, 3)
	return l, l.run(parse(t, begin+phases), planner.Options{AllowShell: true}, change)
}

func wantOperations(t *testing.T, l *lab, want []string, names ...string) {
	t.Helper()
	got := l.Operations(names...)
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("operations\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantCompleted(t *testing.T, outcome executor.Outcome) {
	t.Helper()
	if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
		t.Fatalf("outcome %+v", outcome)
	}
}

// CloneFromTemplate switches balancing and restart off, unless set otherwise.
func TestCloneFromTemplateSetsPlacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, "run:\n  - test.Wait: {duration_secs: 1}\n", nil)
		wantCompleted(t, outcome)
		if n := len(l.Operations("SetHA", "SetBalancing")); n != 8 {
			t.Errorf("%d placement operations, want two for each of 4 VMs", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		text := strings.ReplaceAll(begin, "vm_group_name: B", "vm_group_name: B, disable_ha: False, disable_drs: False")
		wantCompleted(t, l.run(parse(t, text+"run:\n  - test.Wait: {duration_secs: 1}\n"), planner.Options{}, nil))
		if n := len(l.Operations("SetHA", "SetBalancing")); n != 6 {
			t.Errorf("%d placement operations, want two for each of 3 VMs", n)
		}
	})
}

// Grow clones the first VM in its current state and follows its power state.
func TestGrowFollowsPowerState(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"off": {"", ""},
		"on":  {"  - vm_group.PowerOn: {vm_group_name: B}\n", "PowerOnVMs B-0001\nPowerOnVMs B-0002\nPowerOnVMs B-0003\nPowerOnVMs B-0004"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, outcome := play(t, c.before+"run:\n  - vm_group.Grow: {vm_group_name: B, count_per_node: 2, linked_clone: True}\n", nil)
				wantCompleted(t, outcome)
				var on []string
				for _, op := range l.Operations("PowerOnVMs") {
					if strings.Contains(op, "B-") {
						on = append(on, strings.TrimSpace(op))
					}
				}
				if got := strings.Join(on, "\n"); got != c.want {
					t.Errorf("powered on %q, want %q", got, c.want)
				}
				// Two nodes for B: 2 per node are 4, dealt in turn.
				clones := l.Operations("CloneVM")
				if len(clones) != 3 || !strings.Contains(clones[0], "B-0002") {
					t.Errorf("clones %q", clones)
				}
			})
		})
	}
}

func TestMigrateAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, `run:
  - vm_group.MigrateGroup: {vm_group_name: A, from_node: 0, to_node: -1}
  - vm_group.ResetGroupPlacement: {vm_group_name: A}
  - vm_group.ResetGroupPlacement: {vm_group_name: A}
`, nil)
		wantCompleted(t, outcome)
		wantOperations(t, l, []string{"MigrateVMs A-0001 node-3", "MigrateVMs A-0001 node-1"}, "MigrateVMs")
		var placed []string
		for _, e := range l.Events {
			if e.Kind == interval.EventPlaced && e.Subject == "A-0001" {
				placed = append(placed, e.Node)
			}
		}
		if want := []string{"node-1", "node-3", "node-1"}; !reflect.DeepEqual(placed, want) {
			t.Errorf("A-0001 was placed on %q, want %q", placed, want)
		}
	})
}

// A rolling upgrade moves VMs aside, so that loads live through it, and restarts one node after the other.
func TestRollingUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, `run:
  - workload.Start: {workload_name: Load, runtime_secs: 100, async: True}
  - meta.RollingUpgrade: {node_count: 2}
  - workload.Wait: {workload_name: Load}
`, nil)
		wantCompleted(t, outcome)
		wantOperations(t, l, []string{
			"MigrateVMs A-0001 node-2", "ShutdownNode node-1", "PowerOnNode node-1", "MigrateVMs A-0001 node-1",
			// B lies on node-2, the first of its own nodes; it is off and moved all the same.
			"MigrateVMs A-0002 node-3", "MigrateVMs B-0001 node-3", "ShutdownNode node-2", "PowerOnNode node-2",
			"MigrateVMs A-0002 node-2", "MigrateVMs B-0001 node-2",
		}, "MigrateVMs", "ShutdownNode", "PowerOnNode")
		for _, m := range l.Messages(interval.EventAnnotation) {
			if strings.Contains(m, "powered off") {
				t.Errorf("a load was lost: %s", m)
			}
		}
	})
}

func TestPeriodicSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l, outcome := play(t, "run:\n  - vm_group.CreatePeriodicSnapshots: {vm_group_name: A, num_snapshots: 3, interval_minutes: 10}\n", nil)
		wantCompleted(t, outcome)
		if took := time.Since(began); took < 20*time.Minute || took > 21*time.Minute {
			t.Errorf("three snapshots took %v, want two intervals of 10 minutes", took)
		}
		if n := len(l.Operations("SnapshotVMs")); n != 9 {
			t.Errorf("%d snapshots, want 3 of each of 3 VMs", n)
		}
		if n := len(l.Messages(interval.EventAnnotation)); n != 3 {
			t.Errorf("%d annotations, want one per snapshot", n)
		}
	})
}

// Snapshots in the background end with the run phase.
func TestAsyncSnapshotsEndWithThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, `run:
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: A, num_snapshots: 100, interval_minutes: 1, async: True}
  - test.Wait: {duration_secs: 90}
`, nil)
		wantCompleted(t, outcome)
		if n := len(l.Operations("SnapshotVMs")); n != 6 {
			t.Errorf("%d snapshots in 90 s, want 2 of each of 3 VMs", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		l.Fake.SetFault(func(op fake.Operation) error {
			if op.Name == "SnapshotVMs" {
				return errors.New("no space")
			}
			return nil
		})
		outcome := l.run(parse(t, begin+`run:
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: A, num_snapshots: 2, interval_minutes: 1, async: True}
  - test.Wait: {duration_secs: 90}
`), planner.Options{}, nil)
		if len(outcome.Problems) != 1 || !strings.Contains(outcome.Problems[0], "no space") {
			t.Errorf("a snapshot that fails in the background: %+v", outcome)
		}
	})
}

// Powering on in batches, as softening a boot storm asks.
func TestPowerOnInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, "  - vm_group.PowerOff: {vm_group_name: A}\nrun:\n  - vm_group.PowerOn: {vm_group_name: A, max_concurrent: 2}\n", nil)
		wantCompleted(t, outcome)
		if n := len(l.Operations("PowerOnVMs")); n != 6 {
			t.Errorf("%d VMs were powered on, want 3 twice", n)
		}
	})
}

// A VM whose agent does not answer ends the wait after a bound, with its name.
func TestPowerOnTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		began := time.Now()
		outcome := l.run(parse(t, begin+"run:\n  - test.Wait: {duration_secs: 1}\n"), planner.Options{}, func(cfg *executor.Config, _ *target.Inventory) {
			inner := cfg.Runner
			cfg.Runner = func(ctx context.Context, vm target.VM) (load.Runner, error) {
				if vm.Name == "A-0002" {
					return nil, errors.New("no route to host")
				}
				return inner(ctx, vm)
			}
		})
		if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, `first "A-0002", to answer within 2m0s: no route to host`) {
			t.Errorf("outcome %+v", outcome)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// A BMC that fails in a step fails the run; undoing asks it again.
func TestNodePowerOnFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		refused := 0
		l.Fake.SetFault(func(op fake.Operation) error {
			if op.Name == "PowerOnNode" && refused < 1 {
				refused++
				return errors.New("BMC does not answer")
			}
			return nil
		})
		outcome := l.run(parse(t, begin+"run:\n  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0, wait_secs: 30}\n"), planner.Options{}, nil)
		if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, "BMC does not answer") || len(outcome.Left) > 0 {
			t.Errorf("outcome %+v", outcome)
		}
	})
}

func TestCollectLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		_, outcome := play(t, "run:\n  - test.Wait: {duration_secs: 1}\nteardown:\n  - test.CollectCurieVMLogs: {}\n",
			func(cfg *executor.Config, _ *target.Inventory) {
				cfg.Collect = func(_ context.Context, vms []target.VM) error { asked = len(vms); return nil }
			})
		wantCompleted(t, outcome)
		if asked != 4 {
			t.Errorf("asked for the logs of %d VMs, want 4", asked)
		}
	})
}

// Only steps that ask for it mark charts, and only in the run phase.
func TestAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, `  - test.Wait: {duration_secs: 1, annotate: True}
run:
  - test.Wait: {duration_secs: 1}
  - test.Wait: {duration_secs: 1, annotate: True}
  - nodes.PowerOff: {nodes: "0", wait_secs: 0}
  - nodes.PowerOn: {nodes: "0", annotate: False}
`, nil)
		wantCompleted(t, outcome)
		want := []string{"Waiting for 1 s", "Waited for 1 s", "Cutting the power of node-1"}
		if got := l.Messages(interval.EventAnnotation); !reflect.DeepEqual(got, want) {
			t.Errorf("annotations %q, want %q", got, want)
		}
	})
}

// Steps count nodes from 0 while nodes are named otherwise: users see names only.
func TestChecksNameNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, outcome := play(t, `run:
  - check.HypervisorConnectivity: {node_index: 0}
  - check.NodePowerManagementConnectivity: {node_index: -1}
  - check.PrismHostInSameCluster: {node_index: 1}
`, nil)
		wantCompleted(t, outcome)
		want := []string{"The hypervisor of node-1 answers", "The BMC of node-3 answers", "node-2 belongs to the cluster"}
		if got := l.Messages(interval.EventAnnotation); !reflect.DeepEqual(got, want) {
			t.Errorf("annotations %q, want %q", got, want)
		}
	})
}

// real makes the plan of a target that is not simulated, so that programs are run.
func real(_ *executor.Config, inventory *target.Inventory) { inventory.Simulated = false }

func TestShellRunsInTheRunsFolder(t *testing.T) {
	var dir string
	l, outcome := play(t, "run:\n  - experimental.Shell: {cmd: 'echo hello > made; echo shown', annotate: True}\n",
		func(cfg *executor.Config, inventory *target.Inventory) { real(cfg, inventory); dir = cfg.Dir })
	wantCompleted(t, outcome)
	if made, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(made) != "hello\n" {
		t.Errorf("file %q, %v", made, err)
	}
	if logs := strings.Join(l.Messages(interval.EventLog), "\n"); !strings.Contains(logs, "shown") {
		t.Errorf("output is not logged: %q", logs)
	}
	_, outcome = play(t, "run:\n  - experimental.Shell: {cmd: 'echo oops >&2; exit 7'}\n", real)
	if outcome.Ended != executor.Failed || !strings.Contains(outcome.Reason, "exit status 7") {
		t.Errorf("outcome %+v", outcome)
	}
}

// A simulated target counts as any kind, and no programs run for it.
func TestShellIsOnlyNotedOnASimulatedTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dir string
		l := newLab(t, 3)
		outcome := l.run(parse(t, begin+"run:\n  - experimental.Shell: {cmd: 'echo hello > made'}\n"), planner.Options{},
			func(cfg *executor.Config, _ *target.Inventory) { dir = cfg.Dir })
		wantCompleted(t, outcome)
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("it ran: %v", entries)
		}
	})
}

// Stopping kills the program and what it started.
func TestShellIsKilled(t *testing.T) {
	l := newLab(t, 3)
	text := begin + "run:\n  - experimental.Shell: {cmd: 'sleep 1000 & echo $! > child; wait'}\n"
	var child string
	began := time.Now()
	outcome := l.run(parse(t, text), planner.Options{AllowShell: true}, func(cfg *executor.Config, inventory *target.Inventory) {
		real(cfg, inventory)
		child = filepath.Join(cfg.Dir, "child")
		l.ready = func(engine *executor.Engine) {
			for {
				if text, _ := os.ReadFile(child); len(text) > 1 {
					engine.Stop(executor.StopAndUndo)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	})
	if outcome.Ended != executor.Interrupted || time.Since(began) > time.Minute {
		t.Errorf("outcome %+v after %v", outcome, time.Since(began))
	}
	id, _ := os.ReadFile(child)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(id)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("its child still runs: %s", stat)
	}
}

func TestRunCommandFailure(t *testing.T) {
	for name, want := range map[string]string{"": executor.Failed, ", fail_on_error: False": executor.Completed} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 3)
			l.Fake.SetFault(func(op fake.Operation) error {
				if op.Name == "RunInVM" && op.Subject == "A-0002" {
					return errors.New("exit status 1")
				}
				return nil
			})
			outcome := l.run(parse(t, begin+"run:\n  - vm_group.RunCommand: {vm_group_name: A, command: sync"+name+"}\n"), planner.Options{}, nil)
			if outcome.Ended != want {
				t.Errorf("%q: outcome %+v, want %s", name, outcome, want)
			}
			wanted := 3
			if want == executor.Failed {
				wanted = 2 // it ends with the first failure
			}
			if n := len(l.Operations("RunInVM")); n != wanted {
				t.Errorf("ran on %d VMs, want %d", n, wanted)
			}
		})
	}
}

// A wait for VMs ends at its limit, also while an agent is being called that takes its time.
func TestWaitForPowerOnKeepsItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		var deaf atomic.Bool
		_, outcome := play(t, "run:\n  - test.Wait: {duration_secs: 1}\n  - vm_group.WaitForPowerOn: {vm_group_name: A, wait_secs: 300}\n",
			func(cfg *executor.Config, _ *target.Inventory) {
				inner := cfg.Runner
				cfg.Runner = func(ctx context.Context, vm target.VM) (load.Runner, error) {
					if !deaf.Load() {
						return inner(ctx, vm)
					}
					select { // as an agent whose VM boots
					case <-time.After(15 * time.Minute):
						return nil, errors.New("no agent")
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
				timeWaitForPowerOn(cfg, &deaf, &took)
			})
		if outcome.Ended != executor.Failed || took != 5*time.Minute {
			t.Errorf("the step took %v of 5 minutes: %+v", took, outcome)
		}
	})
}

// timeWaitForPowerOn sets deaf from the run's test.Wait until its vm_group.WaitForPowerOn has ended, and took to how long that was.
func timeWaitForPowerOn(cfg *executor.Config, deaf *atomic.Bool, took *time.Duration) {
	events, began := cfg.Events, time.Time{}
	cfg.Events = func(e interval.Event) {
		switch {
		case e.Step == "test.Wait":
			deaf.Store(true)
		case e.Step == "vm_group.WaitForPowerOn" && e.Kind == interval.EventStepStarted:
			began = time.Now()
		case e.Step == "vm_group.WaitForPowerOn" && e.Kind == interval.EventStepEnded:
			*took = time.Since(began)
			deaf.Store(false)
		}
		events(e)
	}
}

// deafTarget lists no VMs from a moment on: its call hangs.
type deafTarget struct {
	*fake.Target
	deaf *atomic.Bool
}

func (d deafTarget) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if d.deaf.Load() && ctx.Done() != nil {
		if _, bounded := ctx.Deadline(); bounded {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		time.Sleep(time.Hour)
	}
	return d.Target.Owned(ctx, tag)
}

// Listing the VMs has no more time than the step that waits for them.
func TestWaitForPowerOnBoundsItsListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		var deaf atomic.Bool
		play(t, "run:\n  - test.Wait: {duration_secs: 1}\n  - vm_group.WaitForPowerOn: {vm_group_name: A, wait_secs: 30}\n",
			func(cfg *executor.Config, _ *target.Inventory) {
				cfg.Target = deafTarget{cfg.Target.(*fake.Target), &deaf}
				timeWaitForPowerOn(cfg, &deaf, &took)
			})
		if took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the step took %v of 30 s", took)
		}
	})
}

// VMs that lost their power with their node are not waited for where nothing restarts them: the plan warns, and the run
// fails at once.
func TestWaitForVMsThatStayOff(t *testing.T) {
	for name, tt := range map[string]struct {
		steps  string
		change func(*target.Inventory)
		warns  bool // and fails
	}{
		"node off":      {steps: "  - nodes.PowerOff: {nodes: 0}\n", warns: true},
		"node on again": {steps: "  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n", warns: true},
		"VMs on again":  {steps: "  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n  - vm_group.PowerOn: {vm_group_name: A}\n"},
		"other node":    {steps: "  - vm_group.PowerOn: {vm_group_name: B}\n  - nodes.PowerOff: {nodes: 2}\n  - vm_group.WaitForPowerOn: {vm_group_name: B}\n", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 3)
				sc := parse(t, strings.ReplaceAll(begin, "power_on: True", "power_on: True, disable_ha: False")+"run:\n"+tt.steps+
					"  - vm_group.WaitForPowerOn: {vm_group_name: A}\n")
				for _, elsewhere := range []bool{true, false} {
					plan, err := l.Compile(sc, planner.Options{}, func(i *target.Inventory) { i.RestartsElsewhere = elsewhere })
					if err != nil {
						t.Fatal(err)
					}
					warned := slices.ContainsFunc(plan.Warnings, func(d diag.Diagnostic) bool { return d.Code == "vms-stay-off" })
					if warned != (tt.warns && !elsewhere) {
						t.Errorf("restarts elsewhere: %t, warned: %t", elsewhere, warned)
					}
				}
				began := time.Now()
				outcome := l.run(sc, planner.Options{}, nil)
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("the run took %v", took)
				}
				if failed := strings.Contains(outcome.Reason, "restarts no VM by itself"); failed != tt.warns {
					t.Errorf("outcome %+v", outcome)
				}
			})
		})
	}
}
