package planner_test

import (
	"strconv"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// TestRateFactor: the factor of a run multiplies that of the scenario, and the plan has the product.
func TestRateFactor(t *testing.T) {
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for factor, want := range map[float64]float64{0: 0, 1: 0, 2.5: 2.5, 0.125: 0.125} {
		sc := plannertest.Load(t, plannertest.Head+plannertest.Deployed+"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 10}\n")
		plan, err := planner.Compile(sc, inventory, target.Capabilities(l.fake), plannertest.Catalog(), planner.Options{RateFactor: factor})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := strconv.ParseFloat(plan.Workloads[0].Options[load.OptionRateScale], 64)
		if got != want {
			t.Errorf("factor %v: the plan scales rates by %v, want %v", factor, got, want)
		}
		if _, changed := sc.Workloads[0].Options[load.OptionRateScale]; changed {
			t.Errorf("factor %v: the scenario was changed", factor)
		}
	}
}
