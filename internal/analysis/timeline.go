package analysis

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Timeline is what events say of the course of a run.
type Timeline struct {
	Phases   []result.Window // in order of their start
	Starts   []LoadStart     // in order of their start
	EndNanos int64           // of the last event
	events   []interval.Event
}

// LoadStart is one start of one workload as events tell it. Prefills are not among them.
type LoadStart struct {
	Workload  string
	Group     string
	Instance  int
	FromNanos int64
	ToNanos   int64 // of its end, or of the last event when it has none
	Ended     bool
	Error     string
}

// NewTimeline reads events, which need not be sorted.
func NewTimeline(events []interval.Event) *Timeline {
	t := &Timeline{events: slices.Clone(events)}
	slices.SortStableFunc(t.events, func(a, b interval.Event) int { return cmp.Compare(a.AtNanos, b.AtNanos) })
	if n := len(t.events); n > 0 {
		t.EndNanos = t.events[n-1].AtNanos
	}
	type loadKey struct {
		workload string
		instance int
	}
	openPhases, openStarts := map[string]int{}, map[loadKey]int{}
	for _, e := range t.events {
		key := loadKey{e.Workload, e.Instance}
		if e.Prefill {
			continue
		}
		switch e.Kind {
		case interval.EventPhaseStarted:
			openPhases[e.Phase] = len(t.Phases)
			t.Phases = append(t.Phases, result.Window{Name: e.Phase, FromNanos: e.AtNanos, ToNanos: t.EndNanos})
		case interval.EventPhaseEnded:
			if i, ok := openPhases[e.Phase]; ok {
				t.Phases[i].ToNanos = e.AtNanos
				delete(openPhases, e.Phase)
			}
		case interval.EventWorkloadStart:
			openStarts[key] = len(t.Starts)
			t.Starts = append(t.Starts, LoadStart{Workload: e.Workload, Group: e.Group, Instance: e.Instance,
				FromNanos: e.AtNanos, ToNanos: t.EndNanos})
		case interval.EventWorkloadEnd:
			if i, ok := openStarts[key]; ok {
				t.Starts[i].ToNanos, t.Starts[i].Ended, t.Starts[i].Error = e.AtNanos, true, e.Error
				delete(openStarts, key)
			}
		}
	}
	return t
}

// Phase returns the first phase of that name.
func (t *Timeline) Phase(name string) (result.Window, bool) {
	for _, p := range t.Phases {
		if p.Name == name {
			return p, true
		}
	}
	return result.Window{}, false
}

// StartsOf returns the starts of one workload.
func (t *Timeline) StartsOf(workload string) []LoadStart {
	var list []LoadStart
	for _, s := range t.Starts {
		if s.Workload == workload {
			list = append(list, s)
		}
	}
	return list
}

// StartsIn returns the starts of all workloads of one group.
func (t *Timeline) StartsIn(group string) []LoadStart {
	var list []LoadStart
	for _, s := range t.Starts {
		if s.Group == group {
			list = append(list, s)
		}
	}
	return list
}
