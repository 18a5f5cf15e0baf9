package executor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
)

// TestPlanKnowsTheWindowsOfARun: every window of a real run may be expected something of, and one with a letter more may
// not.
func TestPlanKnowsTheWindowsOfARun(t *testing.T) {
	const steps = plannertest.Deployed + `run:
  - test.Wait: {duration_secs: 30}
  - workload.Start: {workload_name: Load, runtime_secs: 600, async: true}
  - test.Wait: {duration_secs: 30}
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: Workers, num_snapshots: 2, interval_minutes: 1}
  - test.Wait: {duration_secs: 30}
  - nodes.PowerOff: {nodes: "1"}
  - test.Wait: {duration_secs: 30}
  - nodes.PowerOn: {nodes: "1"}
  - vm_group.PowerOn: {vm_group_name: Workers}
  - workload.Stop: {workload_name: Load}
  - workload.Start: {workload_name: Load, runtime_secs: 60}
  - workload.Start: {workload_name: Other, runtime_secs: 60}
  - test.Wait: {duration_secs: 30}
`
	var windows []string
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4)
		outcome := l.run(plannertest.Head+steps, nil)
		if outcome.Reason != "" {
			t.Fatal(outcome.Reason)
		}
		slices.SortStableFunc(l.Events, func(a, b interval.Event) int { return int(a.AtNanos - b.AtNanos) })
		for _, w := range analysis.NewTimeline(l.Events, 0).Windows() {
			windows = append(windows, w.Name)
		}
	})
	if len(windows) < 8 {
		t.Errorf("the run has only the windows %q", windows)
	}
	for _, name := range windows {
		if strings.Contains(name, "node-") {
			t.Errorf("the window %q is named after a node of the target", name)
		}
	}
	l := newLab(t, 4)
	for _, name := range windows {
		for _, extra := range []string{"", "x"} {
			result := fmt.Sprintf("results:\n  - Rate: {workload_name: Load, result_type: iops, expect: [{that: mean > 1, window: %q}]}\n", name+extra)
			text := strings.Replace(plannertest.Head, "results: []\n", result, 1) + steps
			_, err := l.Compile(plannertest.Load(t, text), planner.Options{}, nil)
			if (err != nil) != (extra != "") {
				t.Errorf("window %q: %v", name+extra, err)
			}
		}
	}
}
