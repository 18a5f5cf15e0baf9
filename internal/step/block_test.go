package step_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
)

// blockHead begins scenarios of two groups with a workload each.
const blockHead = `name: blocks
display_name: Blocks
summary: One
description: One
tags: [test]
estimated_runtime: 60
vms:
  - A: {template: any, data_disks: {count: 1, size: 1}, count_per_cluster: 2}
  - B: {template: any, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
workloads:
  - LoadA: {vm_group: A, config_file: load.fio}
  - LoadB: {vm_group: B, config_file: load.fio}
results:
  - IOPS: {vm_group: A, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A, power_on: true}
  - vm_group.CloneFromTemplate: {vm_group_name: B, power_on: true}
run:
`

// spans returns when each step of the run phase began and ended, in seconds since the phase began, as "name [#iteration] from-to".
func (l *lab) spans() []string {
	l.Lock()
	defer l.Unlock()
	var out []string
	began, zero := map[int]int64{}, int64(0)
	for _, e := range l.Events {
		switch {
		case e.Phase != "run":
		case e.Kind == interval.EventPhaseStarted:
			zero = e.AtNanos
		case e.Kind == interval.EventStepStarted:
			began[e.StepID] = e.AtNanos - zero
		case e.Kind == interval.EventStepEnded:
			name := e.Step
			if e.Iteration != "" {
				name += " #" + e.Iteration
			}
			failed := ""
			if e.Error != "" {
				failed = " failed"
			}
			out = append(out, fmt.Sprintf("%s %.0f-%.0f%s", name, float64(began[e.StepID])/1e9, float64(e.AtNanos-zero)/1e9, failed))
		}
	}
	slices.Sort(out)
	return out
}

func runBlocks(t *testing.T, text string, options planner.Options, change func(*executor.Config, *target.Inventory)) (executor.Outcome, []string) {
	t.Helper()
	l := newLab(t, 3)
	out := l.run(parse(t, blockHead+text), options, change)
	return out, l.spans()
}

func expectSpans(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("steps ran as\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestBranchesRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, spans := runBlocks(t, `
  - meta.Parallel:
      branches:
        - - test.Wait: {duration_secs: 10}
          - workload.Start: {workload_name: LoadA, runtime_secs: 10}
        - - workload.Start: {workload_name: LoadB, runtime_secs: 30}
        - - meta.Repeat: {count: 2, steps: [{test.Wait: {duration_secs: 4}}]}
  - test.Wait: {duration_secs: 1}
`, planner.Options{}, nil)
		if out.Ended != executor.Completed {
			t.Fatalf("%+v", out)
		}
		expectSpans(t, spans, "meta.Parallel 0-30", "test.Wait 0-10", "workload.Start 10-20", "workload.Start 0-30",
			"test.Wait #1 0-4", "test.Wait #2 4-8", "test.Wait 30-31")
	})
}

func TestFirstFailureCancelsOtherBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		out, spans := runBlocks(t, `
  - meta.Parallel:
      branches:
        - - test.Wait: {duration_secs: 1000}
          - test.Wait: {duration_secs: 1}
        - - test.Wait: {duration_secs: 5}
          - workload.Start: {workload_name: LoadB, runtime_secs: 5}
  - test.Wait: {duration_secs: 1}
`, planner.Options{}, func(c *executor.Config, _ *target.Inventory) {
			c.Failpoint = func(name string) error {
				if name == "load.start" {
					calls++
					return fmt.Errorf("no such luck")
				}
				return nil
			}
		})
		if out.Ended != executor.Failed || !strings.Contains(out.Reason, "branch 2: workload.Start: no such luck") || calls != 1 {
			t.Fatalf("%+v", out)
		}
		if len(out.Problems)+len(out.Left) > 0 {
			t.Errorf("%+v", out)
		}
		expectSpans(t, spans, "meta.Parallel 0-5 failed", "test.Wait 0-5 failed", "test.Wait 0-5", "workload.Start 5-5 failed")
	})
}

func TestStopCancelsBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		l.ready = func(e *executor.Engine) {
			time.Sleep(time.Hour / 2)
			e.Stop(executor.StopAndUndo)
		}
		out := l.run(parse(t, blockHead+`
  - meta.Parallel:
      branches:
        - - workload.Start: {workload_name: LoadA, runtime_secs: 3600}
        - - test.Wait: {duration_secs: 3600}
`), planner.Options{}, nil)
		if out.Ended != executor.Interrupted || len(out.Problems)+len(out.Left) > 0 {
			t.Errorf("%+v", out)
		}
		for _, e := range l.Events {
			if e.Kind == interval.EventStepEnded && e.Phase == "run" && (e.Canceled != "stopped by the user" || e.Error != "canceled: stopped by the user") {
				t.Errorf("%s ended with %q, canceled because %q", e.Step, e.Error, e.Canceled)
			}
		}
	})
}

// TestRepeatForATime: as long as the time is not over another iteration begins, and the last is carried to its end.
func TestRepeatForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, spans := runBlocks(t, `
  - meta.Repeat:
      duration_secs: 25
      steps:
        - workload.Start: {workload_name: LoadA, runtime_secs: 7}
        - test.Wait: {duration_secs: 3}
  - test.Wait: {duration_secs: 1}
`, planner.Options{}, nil)
		if out.Ended != executor.Completed {
			t.Fatalf("%+v", out)
		}
		expectSpans(t, spans, "workload.Start #1 0-7", "test.Wait #1 7-10", "workload.Start #2 10-17", "test.Wait #2 17-20",
			"workload.Start #3 20-27", "test.Wait #3 27-30", "test.Wait 30-31")
	})
}

// TestRepeatLeavesOutWhatComesTooLate: steps that take longer than planned cost iterations, not the end of the repetition.
func TestRepeatLeavesOutWhatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, spans := runBlocks(t, `
  - meta.Repeat:
      duration_secs: 20
      steps:
        - test.Wait: {duration_secs: 5}
        - workload.Start: {workload_name: LoadA, runtime_secs: 1}
  - test.Wait: {duration_secs: 1}
`, planner.Options{}, func(c *executor.Config, _ *target.Inventory) {
			c.Failpoint = func(name string) error {
				if name == "load.start" {
					time.Sleep(10 * time.Second)
				}
				return nil
			}
		})
		if out.Ended != executor.Completed {
			t.Fatalf("%+v", out)
		}
		text := strings.Join(spans, "\n")
		if strings.Count(text, "#1") != 2 || strings.Count(text, "#2") != 2 || strings.Contains(text, "#3") || len(spans) != 5 {
			t.Errorf("steps ran as\n%s", text)
		}
	})
}

// compileBlocks makes a plan on the fake target.
func compileBlocks(t *testing.T, text string, options planner.Options) (*planner.Plan, error) {
	t.Helper()
	return newLab(t, 3).Compile(parse(t, blockHead+text), options, nil)
}

func TestBlocksThatMakeNoSense(t *testing.T) {
	for want, text := range map[string]string{
		"parallel-conflict": `  - meta.Parallel: {branches: [[{workload.Start: {workload_name: LoadA, runtime_secs: 5}}], [{workload.Start: {workload_name: LoadA, runtime_secs: 5}}]]}`,
		"nested-parallel":   `  - meta.Parallel: {branches: [[{test.Wait: {duration_secs: 1}}], [{meta.Parallel: {branches: [[{test.Wait: {duration_secs: 1}}], [{test.Wait: {duration_secs: 1}}]]}}]]}`,
		"argument-range":    `  - meta.Parallel: {branches: [[{test.Wait: {duration_secs: 1}}]]}`,
		"missing-argument":  `  - meta.Repeat: {steps: [{test.Wait: {duration_secs: 1}}]}`,
		"repeat-length":     `  - meta.Repeat: {duration_secs: 60, steps: [{vm_group.PowerOff: {vm_group_name: A}}]}`,
		"too-many-steps":    `  - meta.Repeat: {duration_secs: 1000000, steps: [{test.Wait: {duration_secs: 1}}]}`,
		"too-deep":          strings.Repeat(`  - meta.Repeat: {count: 1, steps: [`, 1) + strings.Repeat(`{meta.Repeat: {count: 1, steps: [`, 5) + `{test.Wait: {duration_secs: 1}}` + strings.Repeat(`]}}`, 5) + `]}`,
		"not-started":       `  - meta.Parallel: {branches: [[{workload.Start: {workload_name: LoadA, runtime_secs: 5, async: true}}], [{workload.Wait: {workload_name: LoadA}}]]}`,
		"block-in-teardown": "  - test.Wait: {duration_secs: 1}\nteardown:\n  - meta.Repeat: {count: 2, steps: [{test.Wait: {duration_secs: 1}}]}",
		"unknown-step":      `  - meta.Repeat: {count: 2, steps: [{test.Wiat: {duration_secs: 1}}]}`,
	} {
		_, err := compileBlocks(t, text+"\n", planner.Options{})
		if err == nil {
			t.Errorf("%s: there is a plan", want)
			continue
		}
		text := describe(t, err)
		if !strings.Contains(text, "["+want+"]") {
			t.Errorf("want %s, got %s", want, text)
		}
		if n := strings.Count(text, "["+want+"]"); n != 1 {
			t.Errorf("%s is reported %d times", want, n)
		}
	}
}

// TestEstimateOfBlocks compares estimates with what the engine really takes on the fake target, whose steps take no time of
// their own; with and without a rehearsal.
func TestEstimateOfBlocks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		branches := rapid.IntRange(2, 3).Draw(r, "branches")
		text := "  - meta.Repeat:\n      duration_secs: " + fmt.Sprint(rapid.IntRange(1, 300).Draw(r, "for")) + "\n      steps:\n" +
			"        - test.Wait: {duration_secs: 3}\n        - meta.Parallel:\n            branches:\n"
		for range branches {
			text += fmt.Sprintf("              - [{test.Wait: {duration_secs: %d}}, {test.Wait: {duration_secs: %d}}]\n",
				rapid.IntRange(1, 90).Draw(r, "first"), rapid.IntRange(1, 90).Draw(r, "second"))
		}
		options := planner.Options{}
		if rapid.Bool().Draw(r, "rehearse") {
			options.Rehearse = time.Duration(rapid.IntRange(5, 200).Draw(r, "asked")) * time.Second
		}
		synctest.Test(t, func(t *testing.T) {
			plan, err := compileBlocks(t, text, options)
			if err != nil {
				t.Fatal(describe(t, err))
			}
			l := newLab(t, 3)
			out := l.run(parse(t, blockHead+text), options, nil)
			if out.Ended != executor.Completed {
				t.Fatalf("%+v", out)
			}
			var began, ended int64
			for _, e := range l.Events {
				if e.Phase == "run" && e.Kind == interval.EventPhaseStarted {
					began = e.AtNanos
				} else if e.Phase == "run" && e.Kind == interval.EventPhaseEnded {
					ended = e.AtNanos
				}
			}
			took := time.Duration(ended - began)
			if d := took - plan.Estimate.Run; d.Abs() > time.Second {
				t.Fatalf("planned %v, took %v:\n%s", plan.Estimate.Run, took, text)
			}
		})
	})
}

func TestNodesOffOfBranches(t *testing.T) {
	planned, err := compileBlocks(t, `
  - meta.Parallel:
      branches:
        - [{nodes.PowerOff: {nodes: 0}}, {nodes.PowerOn: {nodes: 0}}]
        - [{nodes.PowerOff: {nodes: 1}}, {nodes.PowerOn: {nodes: 1}}]
  - nodes.PowerOff: {nodes: 2}
  - nodes.PowerOn: {nodes: 2}
`, planner.Options{})
	if err != nil {
		t.Fatal(describe(t, err))
	}
	if n := planned.NodesOffMax(); n != 2 {
		t.Errorf("%d nodes are off at once at most, want 2", n)
	}
	var text strings.Builder
	if err := planned.WriteText(&text, plan.TextOptions{}); err != nil || !strings.Contains(text.String(), "part of meta.Parallel, branch 2") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestUndoOfBranches: what steps of branches and iterations did is taken back.
func TestUndoOfBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		out := l.run(parse(t, blockHead+`
  - meta.Parallel:
      branches:
        - - meta.Repeat: {count: 2, steps: [{vm_group.DisableHA: {vm_group_name: A}}]}
          - nodes.PowerOff: {nodes: 0}
        - - vm_group.PowerOff: {vm_group_name: B}
          - nodes.PowerOff: {nodes: 1}
`), planner.Options{}, nil)
		if out.Ended != executor.Completed || len(out.Problems)+len(out.Left) > 0 {
			t.Fatalf("%+v", out)
		}
		if err := l.Fake.Ready(context.Background()); err != nil {
			t.Error(err) // a node is still off
		}
	})
}

// TestBranchesChangeDifferentGroups: whatever changes a group's VMs, one branch alone may do it. Loads on them, waiting for them and
// what is done to other groups go beside it.
func TestBranchesChangeDifferentGroups(t *testing.T) {
	changes := func(group string) []string {
		return []string{
			"vm_group.PowerOff: {vm_group_name: " + group + "}",
			"vm_group.PowerOn: {vm_group_name: " + group + "}",
			"vm_group.Grow: {vm_group_name: " + group + ", count_per_node: 4}",
			"vm_group.MigrateGroup: {vm_group_name: " + group + ", from_node: 0, to_node: 1}",
			"vm_group.ResetGroupPlacement: {vm_group_name: " + group + "}",
			"vm_group.RelocateGroupDatastore: {vm_group_name: " + group + ", dest_datastore_name: other}",
			"vm_group.CreatePeriodicSnapshots: {vm_group_name: " + group + ", num_snapshots: 1, interval_minutes: 1}",
		}
	}
	ha := []string{"vm_group.EnableHA: {vm_group_name: A}", "vm_group.DisableHA: {vm_group_name: B}"}
	check := func(one, other string, conflict bool) {
		t.Helper()
		_, err := compileBlocks(t, "  - meta.Parallel: {branches: [[{"+one+"}], [{"+other+"}]]}\n", planner.Options{})
		told := ""
		if err != nil {
			told = describe(t, err)
		}
		if conflict != strings.Contains(told, "[parallel-conflict]") || !conflict && err != nil {
			t.Errorf("%s beside %s: %s", one, other, told)
		}
	}
	for _, one := range changes("A") {
		for _, other := range changes("A") {
			check(one, other, true)
		}
		for _, other := range changes("B") {
			check(one, other, false)
		}
		check(one, ha[0], false)
		check(one, "workload.Start: {workload_name: LoadA, runtime_secs: 5}", false)
		check("vm_group.WaitForPowerOn: {vm_group_name: A}", one, false)
	}
	check(ha[0], ha[1], true)
}
