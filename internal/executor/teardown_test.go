package executor_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
)

const ownTeardown = plannertest.Head + plannertest.Deployed + `run:
  - workload.Start: {workload_name: Load, runtime_secs: 1000, async: True}
  - nodes.PowerOff: {nodes: 0}
  - test.Wait: {duration_secs: 1000}
teardown:
  - workload.Stop: {workload_name: Load}
  - workload.Start: {workload_name: Other, runtime_secs: 5}
  - vm_group.PowerOff: {vm_group_name: Workers}
  - vm_group.EnableHA: {vm_group_name: Workers}
`

// recorded is a plan as a bundle holds it.
func (l *lab) recorded(text string) *planner.Plan {
	l.T.Helper()
	sc := plannertest.Load(l.T, text)
	data, err := json.Marshal(l.Plan(sc, planner.Options{}))
	if err != nil {
		l.T.Fatal(err)
	}
	scenarioText, err := json.Marshal(sc)
	if err != nil {
		l.T.Fatal(err)
	}
	kept := *sc
	if err := json.Unmarshal(scenarioText, &kept); err != nil {
		l.T.Fatal(err)
	}
	kept.Files, kept.Source, kept.Rendered = nil, "", "" // a bundle's JSON has them not
	plan, err := planner.ReadPlan(data, &kept)
	if err != nil {
		l.T.Fatal(err)
	}
	return plan
}

// A run whose controller died is torn down as its scenario specifies, with nodes first and undo last. A step that needs
// state that died with the controller is reported and does not prevent the following steps.
func TestTeardownAfterDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.runDying(ownTeardown, nth("node.powered-off", 1))
		before := len(l.Fake.Operations())
		var said []string
		c := executor.Cleaner{Runs: l.Runs, Target: l.Fake, Catalog: plannertest.Catalog(), Plan: l.recorded(ownTeardown),
			Say: func(text string) { said = append(said, text) }}
		if err := c.Undo(t.Context(), "r1"); err != nil {
			t.Fatal(err)
		}
		l.MustBeClean()
		want := []string{
			"teardown, workload.Stop: done", "teardown, workload.Start: run is stopping", "teardown, vm_group.PowerOff: done",
			"teardown, vm_group.EnableHA: done",
		}
		if got := teardownLines(said); !slices.Equal(got, want) {
			t.Errorf("said %q", said)
		}
		var ops []string
		for _, op := range l.Fake.Operations()[before:] {
			ops = append(ops, op.Name)
		}
		at := func(prefix string) int {
			return slices.IndexFunc(ops, func(s string) bool { return strings.HasPrefix(s, prefix) })
		}
		off, on, deleted := at("PowerOffVMs"), at("PowerOnNode"), at("Delete")
		if on < 0 || off < on || deleted < off {
			t.Errorf("done in the order %q", ops)
		}
	})
}

// Teardown does not run twice, neither when undo has to be repeated nor when the run itself has completed it.
func TestTeardownHappensOnce(t *testing.T) {
	for _, point := range []string{"undo.vms", "vms.deleted"} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				l.runDying(ownTeardown, nth("node.powered-off", 1))
				var said []string
				c := executor.Cleaner{Runs: l.Runs, Target: l.Fake, Catalog: plannertest.Catalog(), Plan: l.recorded(ownTeardown),
					Say: func(text string) { said = append(said, text) }, Failpoint: nth(point, 1)}
				if err := c.Undo(t.Context(), "r1"); err == nil {
					t.Fatal("undoing should have failed")
				}
				c.Failpoint = nil
				if err := c.Undo(t.Context(), "r1"); err != nil {
					t.Fatal(err)
				}
				l.MustBeClean()
				if got := teardownLines(said); len(got) != 4 {
					t.Errorf("said %q", got)
				}
			})
		})
	}
	t.Run("by the run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 2)
			short := strings.Replace(ownTeardown, "duration_secs: 1000", "duration_secs: 1", 1)
			l.runDying(short, nth("undo.vms", 1))
			var said []string
			c := executor.Cleaner{Runs: l.Runs, Target: l.Fake, Catalog: plannertest.Catalog(), Plan: l.recorded(short),
				Say: func(text string) { said = append(said, text) }}
			if err := c.Undo(t.Context(), "r1"); err != nil {
				t.Fatal(err)
			}
			l.MustBeClean()
			if got := teardownLines(said); len(got) != 0 {
				t.Errorf("torn down again: %q", got)
			}
		})
	})
}

// A plan from a release that this program does not know is refused, and one that is cut is too.
func TestReadPlanRefuses(t *testing.T) {
	for _, text := range []string{`{"format": 99}`, `{"format": 1,`, `[]`} {
		if p, err := planner.ReadPlan([]byte(text), nil); err == nil {
			t.Errorf("%s: %+v", text, p)
		}
	}
}

func teardownLines(said []string) []string {
	var out []string
	for _, s := range said {
		if strings.HasPrefix(s, "teardown") {
			out = append(out, s)
		}
	}
	return out
}
