package executor_test

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
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// slowStep simulates a power cut or a migration: its duration is unknown to the plan, and a rehearsal does not shorten it.
type slowStep struct {
	Takes int `arg:"takes_secs,required"`
}

func (s *slowStep) Run(ctx context.Context, _ *verb.Env) error {
	select {
	case <-time.After(time.Duration(s.Takes) * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rehearse compiles and runs a scenario with slow steps as a rehearsal of that length.
func (l *lab) rehearse(text string, length time.Duration) (*planner.Plan, executor.Outcome) {
	l.T.Helper()
	l.Catalog.Steps = append(l.Catalog.Steps, verb.Kind{Name: "lab.Slow", Needs: []target.Capability{target.CapVMPower},
		New: func() verb.Step { return new(slowStep) }})
	plan := l.Plan(plannertest.Load(l.T, text), planner.Options{Rehearse: length})
	return plan, l.Run(plan, nil)
}

// span is when a step or load began and ended.
type span struct{ from, to time.Duration }

// spans returns when steps, by id, loads and the run phase began and ended.
func (l *lab) spans() (steps map[int]span, loads map[string]span, phase span) {
	steps, loads = map[int]span{}, map[string]span{}
	for _, e := range l.Events {
		at := time.Duration(e.AtNanos)
		load := fmt.Sprint(e.Workload, " ", e.Instance)
		switch e.Kind {
		case interval.EventPhaseStarted, interval.EventPhaseEnded:
			if e.Phase == string(plan.Run) {
				phase = span{max(phase.from, phase.to), at}
			}
		case interval.EventStepStarted:
			steps[e.StepID] = span{from: at}
		case interval.EventStepEnded:
			steps[e.StepID] = span{steps[e.StepID].from, at}
		case interval.EventWorkloadStart:
			loads[load] = span{from: at}
		case interval.EventWorkloadEnd:
			loads[load] = span{loads[load].from, at}
		}
	}
	return steps, loads, phase
}

// TestLoadsLastOverSlowSteps: a load ends when the steps are over that the scenario has it last over, and no later.
func TestLoadsLastOverSlowSteps(t *testing.T) {
	const (
		start = "  - workload.Start: {workload_name: Load, runtime_secs: 300, async: True}\n"
		wait  = "  - test.Wait: {duration_secs: 100}\n"
		slow  = "  - lab.Slow: {takes_secs: 40}\n"
		until = "  - workload.Wait: {workload_name: Load}\n"
		stop  = "  - workload.Stop: {workload_name: Load}\n"
	)
	for name, c := range map[string]struct {
		steps     string
		asked     int    // seconds; all times are a tenth of the scenario's, but for floors
		lasts     string // the load's Lasting, "" without one
		ends, run int    // seconds: of the load, from its start, and of the run phase
	}{
		"waits alone":  {start + wait + wait + wait + until, 30, "", 30, 30},
		"slow between": {start + wait + slow + wait + slow + wait + until, 30, "step 8 (test.Wait) ends", 110, 110},
		"slow behind":  {start + wait + wait + wait + slow, 30, "", 30, 70},
		"no step":      {start + until, 30, "", 30, 30},
		"stopped":      {start + wait + slow + wait + stop + wait, 30, "step 6 (test.Wait) ends", 60, 70},
		"into a wait":  {start + wait + slow + "  - test.Wait: {duration_secs: 250}\n", 35, "20 s into step 6 (test.Wait)", 70, 75},
		"waited for":   {start + wait + slow + until, 30, "20 s into step 6 (workload.Wait)", 70, 70},
		"floors":       {start + strings.Repeat("  - test.Wait: {duration_secs: 25}\n", 12) + until, 3, "step 15 (test.Wait) ends", 12, 12},
		"branches": {start + wait + "  - meta.Parallel:\n      branches:\n        - - lab.Slow: {takes_secs: 40}\n" +
			"          - test.Wait: {duration_secs: 50}\n        - - test.Wait: {duration_secs: 400}\n          - lab.Slow: {takes_secs: 1}\n" + until,
			50, "step 7 (test.Wait) ends and 20 s into step 8 (test.Wait)", 55, 55},
		"beside": {"  - meta.Parallel:\n      branches:\n        - - workload.Start: {workload_name: Load, runtime_secs: 300}\n" +
			"        - - test.Wait: {duration_secs: 100}\n          - lab.Slow: {takes_secs: 40}\n          - test.Wait: {duration_secs: 100}\n",
			30, "step 7 (test.Wait) ends", 60, 60},
		"repeated": {start + "  - meta.Repeat:\n      duration_secs: 300\n      steps:\n        - test.Wait: {duration_secs: 100}\n" +
			"        - lab.Slow: {takes_secs: 17}\n" + until, 30, "step 8 (test.Wait) ends", 54, 54}, // no third iteration
		// Steps that end by loads: none waits for the other.
		"waited for in a branch": {start + "  - meta.Parallel:\n      branches:\n        - - workload.Wait: {workload_name: Load}\n" +
			"        - - lab.Slow: {takes_secs: 40}\n", 30, "30 s into step 5 (workload.Wait) and step 6 (lab.Slow) ends", 40, 40},
		"two beside each other": {"  - meta.Parallel:\n      branches:\n        - - workload.Start: {workload_name: Load, runtime_secs: 300}\n" +
			"        - - workload.Start: {workload_name: Other, runtime_secs: 300}\n", 30, "", 30, 30},
		"two waited for": {start + strings.ReplaceAll(start, "Load", "Other") + "  - meta.Parallel:\n      branches:\n        - - workload.Wait: {workload_name: Load}\n" +
			"        - - workload.Wait: {workload_name: Other}\n", 30, "30 s into step 6 (workload.Wait) and 30 s into step 7 (workload.Wait)", 30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				plan, outcome := l.rehearse(plannertest.Head+plannertest.Deployed+"run:\n"+c.steps, time.Duration(c.asked)*time.Second)
				if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
					t.Fatal(outcome)
				}
				lasts := ""
				for _, s := range plan.Steps {
					if s.Lasting != nil {
						lasts += s.Lasting.String()
					}
				}
				if lasts != c.lasts {
					t.Errorf("the load lasts until %q, want %q", lasts, c.lasts)
				}
				_, loads, phase := l.spans()
				if ends := int((loads["Load 1"].to - loads["Load 1"].from).Round(time.Second).Seconds()); ends != c.ends {
					t.Errorf("the load lasted %d s, want %d", ends, c.ends)
				}
				if took := int((phase.to - phase.from).Round(time.Second).Seconds()); took != c.run {
					t.Errorf("the run took %d s, want %d", took, c.run)
				}
				reported := slices.ContainsFunc(l.Messages(interval.EventLog), func(m string) bool { return strings.Contains(m, "Load extended by") })
				if planned := len(plan.Rehearsal.Notes) > 0; reported != (c.ends > c.asked) || planned != (c.lasts != "") && name != "floors" {
					t.Errorf("reported: %t, notes: %q", reported, plan.Rehearsal.Notes)
				}
			})
		})
	}
}

// TestLoadThatLastsIsBounded: a step that does not end keeps a load for minutes, not forever.
func TestLoadThatLastsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.rehearse(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 100, async: True}
  - test.Wait: {duration_secs: 50}
  - lab.Slow: {takes_secs: 4000}
  - test.Wait: {duration_secs: 50}
`, 10*time.Second)
		_, loads, _ := l.spans()
		if took := loads["Load 1"].to - loads["Load 1"].from; took.Round(time.Second) != 311*time.Second {
			t.Errorf("the load lasted %v", took)
		}
	})
}

// TestLoadOutlastsWaitForAnother: a load has a least length in a rehearsal, and one that outlasts the wait for it does so here too.
func TestLoadOutlastsWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.rehearse(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Other, runtime_secs: 11, async: True}
  - lab.Slow: {takes_secs: 1}
  - workload.Start: {workload_name: Load, runtime_secs: 10, async: True}
  - test.Wait: {duration_secs: 5}
  - workload.Wait: {workload_name: Load}
`, time.Second)
		_, loads, _ := l.spans()
		if other, load := loads["Other 1"].to, loads["Load 1"].to; other < load {
			t.Errorf("Other ended at %v, Load at %v", other, load)
		}
	})
}

// TestPowerOffEndsLoads: a load ends when its VMs are powered off, and may be started again.
func TestPowerOffEndsLoads(t *testing.T) {
	l := newLab(t, 2)
	compile := func(steps string, o planner.Options) *planner.Plan {
		return l.Plan(plannertest.Load(t, plannertest.Head+plannertest.Deployed+"run:\n"+steps), o)
	}
	const (
		load = "  - workload.Start: {workload_name: Load, runtime_secs: 300, async: True}\n  - test.Wait: {duration_secs: 100}\n"
		off  = "  - vm_group.PowerOff: {vm_group_name: Workers}\n"
		all  = "  - cluster.PowerOffCurieVMs: {}\n"
		on   = "  - vm_group.PowerOn: {vm_group_name: Workers}\n"
		wait = "  - test.Wait: {duration_secs: 50}\n"
	)
	for name, steps := range map[string]string{"group": load + off + wait + on + load + wait, "all": load + all + wait + on + load} {
		plan := compile(steps, planner.Options{Rehearse: 30 * time.Second})
		if got := plan.Steps[2].Lasting.String(); !strings.Contains(got, "PowerOff") || !strings.HasSuffix(got, "ends") {
			t.Errorf("%s: the load lasts until %q", name, got)
		}
		for _, w := range plan.Warnings {
			if w.Code == "still-running" {
				t.Errorf("%s: %s", name, w.Message)
			}
		}
	}
	if plan := compile(load+wait+load, planner.Options{}); len(plan.Warnings) == 0 || plan.Warnings[0].Code != "still-running" {
		t.Errorf("without a cut: %v", plan.Warnings)
	}
}

// TestLastingHolds: whatever the steps are, a load outlasts those that it outlasts in the scenario.
func TestLastingHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("many runs")
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		asked := time.Duration(rapid.IntRange(1, 200).Draw(rt, "asked")) * time.Second
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 1)
			_, outcome := l.rehearse(plannertest.Head+plannertest.Deployed+"run:\n"+m.text, asked)
			if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
				wrong = append(wrong, fmt.Sprint(outcome))
				return
			}
			steps, loads, _ := l.spans()
			for _, c := range m.covered {
				step, load := steps[c.step], loads[c.load]
				if load.to < step.to && !c.partly || load.to < step.from {
					wrong = append(wrong, fmt.Sprintf("%s ended at %v, step %d is from %v to %v", c.load, load.to, c.step, step.from, step.to))
				}
			}
		})
		if len(wrong) > 0 {
			rt.Fatalf("%q\n%s", wrong, m.text)
		}
	})
}

// model is a scenario with what its loads last over.
type model struct {
	text    string
	covered []struct {
		load   string
		step   int
		partly bool
	}
}

func drawModel(rt *rapid.T) model {
	var m model
	type going struct {
		name string
		ends int
	}
	type item struct{ from, to, id int }
	var items []item
	starts := map[string]going{} // by workload: the last start
	var all []going
	began := map[string]int{} // id of the step that started it
	clock, count := 0, map[string]int{}
	for id := 3; id < 3+rapid.IntRange(2, 12).Draw(rt, "steps"); id++ {
		workload := rapid.SampledFrom([]string{"Load", "Other"}).Draw(rt, "workload")
		last, started := starts[workload]
		running := started && last.ends > clock
		from := clock
		switch kind := rapid.IntRange(0, 4).Draw(rt, "kind"); {
		case kind == 0 && !started:
			length := rapid.IntRange(10, 900).Draw(rt, "runtime")
			count[workload]++
			g := going{fmt.Sprint(workload, " ", count[workload]), clock + length}
			starts[workload], began[g.name] = g, id
			m.text += fmt.Sprintf("  - workload.Start: {workload_name: %s, runtime_secs: %d, async: True}\n", workload, length)
		case kind == 1 && running:
			clock = last.ends
			m.text += fmt.Sprintf("  - workload.Wait: {workload_name: %s}\n", workload)
		case kind == 2 && running:
			starts[workload] = going{last.name, clock}
			m.text += fmt.Sprintf("  - workload.Stop: {workload_name: %s}\n", workload)
		case kind == 3:
			m.text += fmt.Sprintf("  - lab.Slow: {takes_secs: %d}\n", rapid.IntRange(1, 100).Draw(rt, "takes"))
		default:
			length := rapid.IntRange(5, 400).Draw(rt, "wait")
			clock += length
			m.text += fmt.Sprintf("  - test.Wait: {duration_secs: %d}\n", length)
		}
		items = append(items, item{from, clock, id})
	}
	for _, g := range starts {
		all = append(all, g)
	}
	for _, g := range all {
		for _, i := range items {
			if i.id > began[g.name] && i.from < g.ends {
				m.covered = append(m.covered, struct {
					load   string
					step   int
					partly bool
				}{g.name, i.id, i.to >= g.ends})
			}
		}
	}
	return m
}
