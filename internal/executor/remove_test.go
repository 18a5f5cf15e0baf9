package executor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner/plannertest"
)

// What a prefill made outside of its VM is removed once while the VM exists, by teardown or by undo, also after a run phase that failed.
func TestRemovesWhatAPrefillMade(t *testing.T) {
	const filled = "  - workload.PrefillRun: {workload_name: Load}\nrun:\n  - workload.Start: {workload_name: Load, runtime_secs: 5}\n"
	const teardown = "teardown:\n  - cluster.CleanUp: {}\n"
	const tables = "the data of endpoint \"rds\""
	for name, c := range map[string]struct {
		steps, removes string
		loadFails      bool
		removed        int
	}{
		"teardown":      {filled + teardown, tables, false, 2},
		"undo":          {filled, tables, false, 2},
		"a failed load": {filled + teardown, tables, true, 2},
		"kept":          {filled + teardown, "", false, 0},
		"no prefill":    {"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 5}\n" + teardown, tables, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				l.LoadErr = func(w load.Workload) error {
					if c.loadFails && !w.Prefill {
						return errors.New("broke")
					}
					return nil
				}
				p := l.planOf(plannertest.Head + plannertest.Deployed + c.steps)
				for i := range p.Workloads {
					if p.Workloads[i].Prefill != nil {
						p.Workloads[i].Prefill.Removes = c.removes
					}
				}
				l.Run(p, nil)
				removed := 0
				for _, w := range l.Loads {
					if w.Remove {
						removed++
						if !w.Prefill || w.Name != "Load" {
							t.Errorf("%+v", w)
						}
					}
				}
				said := slices.DeleteFunc(l.Messages(interval.EventRemoved), func(m string) bool { return m != "removed "+tables })
				if removed != c.removed || len(said) != c.removed {
					t.Errorf("removed on %d VMs, reported %d times; want %d", removed, len(said), c.removed)
				}
				l.MustBeClean()
			})
		})
	}
}

// What cannot be removed is reported, and holds up neither teardown nor the verdict.
func TestRemovalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		l.LoadErr = func(w load.Workload) error {
			if w.Remove {
				return errors.New("connection refused")
			}
			return nil
		}
		p := l.planOf(plannertest.Head + plannertest.Deployed + "  - workload.PrefillRun: {workload_name: Load}\nrun:\n  - test.Wait: {duration_secs: 1}\nteardown:\n  - cluster.CleanUp: {}\n")
		for i := range p.Workloads {
			if p.Workloads[i].Prefill != nil {
				p.Workloads[i].Prefill.Removes = "the data of endpoint \"rds\""
			}
		}
		if outcome := l.Run(p, nil); outcome.Ended != executor.Completed {
			t.Errorf("%+v", outcome)
		}
		if !slices.ContainsFunc(l.Events, func(e interval.Event) bool {
			return e.Kind == interval.EventDisturbance && strings.Contains(e.Message, "endpoint \"rds\" stays: Workers-0001 cannot") && strings.Contains(e.Error, "refused")
		}) {
			t.Error("no disturbance")
		}
		l.MustBeClean()
	})
}
