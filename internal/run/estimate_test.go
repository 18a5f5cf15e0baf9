package run_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

// paced plans like plain, with a length that its configuration says.
type paced struct {
	plain
	least, most time.Duration
}

func (p paced) Plan(w load.Workload) (load.Plan, error) {
	plan, err := p.plain.Plan(w)
	plan.TakesLeast, plan.TakesMost = p.least, p.most
	return plan, err
}

// TestEstimateCountsRatesAndRuntimes: a slow rate or a runtime in the job file makes the length of a load that no step
// bounds, and a rehearsal shrinks the rest only.
func TestEstimateCountsRatesAndRuntimes(t *testing.T) {
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		least, most time.Duration
		steps       string
		want        time.Duration
		rough       bool
	}{
		{0, 0, "  - workload.Start: {workload_name: Load}\n", 2684354560, true}, // 4 VMs with 128 MiB at 200 MB/s
		{164 * time.Second, 0, "  - workload.Start: {workload_name: Load}\n", 164 * time.Second, true},
		{4 * time.Second, 4 * time.Second, "  - workload.Start: {workload_name: Load}\n", 4 * time.Second, false},
		{0, time.Second, "  - workload.Start: {workload_name: Load}\n", time.Second, true},
		{0, 4 * time.Second, "  - workload.Start: {workload_name: Load, runtime_secs: 60}\n", 4 * time.Second, false},
		{9 * time.Second, 0, "  - workload.Start: {workload_name: Load, async: true}\n  - workload.Wait: {workload_name: Load}\n", 9 * time.Second, false},
	} {
		catalog := catalog()
		catalog.Generators = map[string]load.Generator{"native": paced{least: c.least, most: c.most}}
		compile := func(options run.Options, more string) *run.Plan {
			plan, err := run.Compile(loadText(t, head+deployed+"run:\n"+c.steps+more), inventory, target.Capabilities(l.fake), catalog, options)
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		if e := compile(run.Options{}, "").Estimate; e.Run != c.want || e.Rough != c.rough {
			t.Errorf("%v to %v: the run takes %v (rough: %t), want %v", c.least, c.most, e.Run, e.Rough, c.want)
		}
		// In a rehearsal the wait behind the load gets what is left.
		asked := c.want + 10*time.Second
		rehearsal := compile(run.Options{Rehearse: asked}, "  - test.Wait: {duration_secs: 1000}\n")
		if off := rehearsal.Estimate.Run - asked; off.Abs() > time.Second && c.steps[len(c.steps)-4:] != "60}\n" {
			t.Errorf("%v to %v: the rehearsal takes %v, asked for %v", c.least, c.most, rehearsal.Estimate.Run, asked)
		}
	}
}
