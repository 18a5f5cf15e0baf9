package planner_test

import (
	"os"
	"testing"

	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// lab is a fake target to plan for.
type lab struct {
	t    *testing.T
	fake *fake.Target
}

func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	opened, err := fake.Open(t.Context(), target.Config{Provider: "fake", Name: "lab", NodeCount: nodes,
		Allow: target.Allow{NodePower: true, Maintenance: true}}, target.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return &lab{t: t, fake: opened}
}

func (l *lab) plan(sc *scenario.Scenario, options planner.Options) *planner.Plan {
	l.t.Helper()
	inventory, err := l.fake.Inventory(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	plan, err := planner.Compile(sc, inventory, target.Capabilities(l.fake), plannertest.Catalog(), options)
	if err != nil {
		l.t.Fatal(err)
	}
	return plan
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
