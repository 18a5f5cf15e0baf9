package step_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	generators "github.com/braggdev/bragg/internal/load/builtin"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/target"
	targets "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/verb"
	"github.com/braggdev/bragg/scenarios"
)

func realCatalog() verb.Catalog {
	return verb.Catalog{Steps: step.All(), Generators: generators.Generators()}
}

// planOn compiles sc for a target such as "fake:4".
func planOn(t *testing.T, sc *scenario.Scenario, spec string, options planner.Options) (*planner.Plan, error) {
	t.Helper()
	tgt, err := targets.Open(t.Context(), spec, target.OpenOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer tgt.Close()
	inventory, err := tgt.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return planner.Compile(sc, inventory, target.Capabilities(tgt), realCatalog(), options)
}

func describe(t *testing.T, err error) string {
	t.Helper()
	var list *diag.ListError
	if !errors.As(err, &list) {
		return err.Error()
	}
	var b bytes.Buffer
	_ = diag.Render(&b, list.List)
	return b.String()
}

// everyScenario calls check for each public scenario beside this checkout and for each shipped one.
func everyScenario(t *testing.T, check func(t *testing.T, sc *scenario.Scenario)) {
	corpus := testreq.Corpus(t, "xray")
	count := 0
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "test.yml" {
			return err
		}
		count++
		dir := filepath.Dir(path)
		name, _ := filepath.Rel(corpus, dir)
		t.Run(name, func(t *testing.T) {
			sc, err := scenario.Load(context.Background(), scenario.Source{Path: dir, Trusted: true}, scenario.Options{})
			if err != nil {
				t.Fatal(describe(t, err))
			}
			check(t, sc)
		})
		return nil
	})
	if err != nil || count != 39 {
		t.Errorf("found %d scenarios, want 39: %v", count, err)
	}
	entries, _ := scenarios.FS.ReadDir(".")
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t.Run("shipped/"+e.Name(), func(t *testing.T) {
			sub, _ := fs.Sub(scenarios.FS, e.Name())
			sc, err := scenario.Load(context.Background(), scenario.Source{FS: sub, Trusted: true}, scenario.Options{})
			if err != nil {
				t.Fatal(describe(t, err))
			}
			check(t, sc)
		})
	}
}

func TestEveryScenarioCompilesOnFake(t *testing.T) {
	everyScenario(t, func(t *testing.T, sc *scenario.Scenario) {
		plan, err := planOn(t, sc, "fake:4", planner.Options{})
		if err != nil {
			t.Fatal(describe(t, err))
		}
		if len(plan.Steps) == 0 {
			t.Error("the plan has no step")
		}
		first, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := planOn(t, sc, "fake:4", planner.Options{})
		if second, _ := json.Marshal(again); !bytes.Equal(first, second) {
			t.Error("the same input gives two different plans")
		}
	})
}

func TestEveryScenarioRehearses(t *testing.T) {
	const asked = 30 * time.Second
	everyScenario(t, func(t *testing.T, sc *scenario.Scenario) {
		full, err := planOn(t, sc, "fake:8", planner.Options{})
		if err != nil {
			t.Fatal(describe(t, err))
		}
		plan, err := planOn(t, sc, "fake:8", planner.Options{Rehearse: asked})
		if err != nil {
			t.Fatal(describe(t, err))
		}
		checkRehearsal(t, full, plan, asked)
	})
}

func checkRehearsal(t *testing.T, full, plan *planner.Plan, asked time.Duration) {
	t.Helper()
	notes := strings.Join(plan.Notes, "\n")
	if plan.Rehearsal == nil || len(plan.Target.Nodes) > 4 {
		t.Fatalf("rehearsal %v on %d nodes", plan.Rehearsal, len(plan.Target.Nodes))
	}
	if plan.Footprint.Bytes() > 2<<30 {
		t.Errorf("footprint of %d bytes is more than 2 GiB; %s", plan.Footprint.Bytes(), notes)
	}
	groups := 0
	for _, g := range plan.Groups {
		if g.ScenarioCountFinal > 0 && len(g.VMs) > 0 {
			groups++
		}
		if g.CountFinal < 1 && len(full.Groups) > 0 && g.ScenarioCount > 0 && groups == 0 {
			t.Errorf("group %q has no VM", g.Name)
		}
		if g.ScenarioCountFinal > g.ScenarioCount && g.CountFinal <= g.Count {
			t.Errorf("group %q grows from %d to %d", g.Name, g.Count, g.CountFinal)
		}
	}
	if plan.Footprint.VMs > max(16, groups) {
		t.Errorf("%d VMs in %d groups", plan.Footprint.VMs, groups)
	}
	if plan.Estimate.Run > asked+time.Second && !strings.Contains(notes, "lengthen the run phase") {
		t.Errorf("run phase takes %v and no note says why: %s", plan.Estimate.Run, notes)
	}
	if plan.Estimate.Run < asked-time.Second && full.Estimate.Run > asked && plan.Rehearsal.TimeFactor < 1 {
		t.Errorf("run phase takes %v", plan.Estimate.Run)
	}
	for _, s := range plan.Steps {
		if secs, ok := s.Args["runtime_secs"].(float64); ok && secs < 3 {
			t.Errorf("step %d %s runs for %v s", s.ID, s.Name, secs)
		}
		if secs, ok := s.Args["duration_secs"].(float64); ok && secs < 1 {
			t.Errorf("step %d %s waits for %v s", s.ID, s.Name, secs)
		}
	}
}
