package session

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
)

// A dead run may have left what its prefills made elsewhere: if one began, and until the run has recorded the removal.
func TestLeftOutside(t *testing.T) {
	const rds = `the data of endpoint "rds" (table bragg_commits)`
	p := &planner.Plan{Plan: plan.Plan{Workloads: []plan.Workload{
		{Name: "A", Prefill: &load.Plan{Removes: rds}}, {Name: "B", Prefill: &load.Plan{Removes: rds}}, {Name: "C", Prefill: &load.Plan{}}, {Name: "D"},
	}}}
	filled := func(name string) interval.Event {
		return interval.Event{Kind: interval.EventWorkloadStart, Workload: name, Prefill: true}
	}
	for name, c := range map[string]struct {
		events []interval.Event
		want   []string
	}{
		"nothing began":     {nil, nil},
		"only a load":       {[]interval.Event{{Kind: interval.EventWorkloadStart, Workload: "A"}}, nil},
		"on disks":          {[]interval.Event{filled("C"), filled("D")}, nil},
		"filled":            {[]interval.Event{filled("A"), filled("C")}, []string{rds}},
		"filled twice":      {[]interval.Event{filled("A"), filled("B")}, []string{rds}},
		"removed":           {[]interval.Event{filled("A"), {Kind: interval.EventRemoved, Workload: "A"}}, nil},
		"not removed":       {[]interval.Event{filled("A"), {Kind: interval.EventDisturbance, Workload: "A"}}, []string{rds}},
		"filled once again": {[]interval.Event{filled("A"), {Kind: interval.EventRemoved, Workload: "A"}, filled("A")}, []string{rds}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		w, err := result.Create(dir, resulttest.Manifest(resulttest.Params{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.events {
			if err := w.Event(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := leftOutside(dir, p); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	if got, err := leftOutside(filepath.Join(t.TempDir(), "none"), nil); got != nil || err != nil {
		t.Errorf("without a plan: %q, %v", got, err)
	}
}
