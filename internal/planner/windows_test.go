package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// TestLabelsDiffer: the second step of the same name gets a number, which a workload's own name may have already.
func TestLabelsDiffer(t *testing.T) {
	const start = "  - workload.Start: {workload_name: Load, runtime_secs: 1}\n"
	text := strings.Replace(plannertest.Head, "- Other:", "- Load (2):", 1) + plannertest.Deployed + "run:\n" + start + start +
		"  - test.Wait: {duration_secs: 1}\n  - workload.Start: {workload_name: Load (2), runtime_secs: 1}\n"
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), plannertest.Catalog(), planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, s := range p.Steps[2:] {
		labels = append(labels, s.Label)
	}
	if want := []string{"Load", "Load (3)", "", "Load (2)"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
}
