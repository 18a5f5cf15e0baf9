package analysis

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Timeline is the course of a run according to its events.
type Timeline struct {
	Phases   []result.Window // in order of their start
	Starts   []LoadStart     // in order of their start
	EndNanos int64           // of the last event, or of the last data recorded after it
	events   []interval.Event
}

// LoadStart is one start of one workload according to events. Prefills are not included.
type LoadStart struct {
	Workload  string
	Group     string
	Instance  int
	FromNanos int64
	ToNanos   int64 // of its end, or of the last event if it has no end
	Ended     bool
	Stopped   bool // by a step, before it completed
	Error     string
}

// Start names one start of a workload.
type Start struct {
	Workload string
	Instance int
}

// SizeBound holds the starts of workloads that run until their data is processed, as prefills always do.
type SizeBound map[Start]bool

// Of reports whether the load of an interval is bound by its size.
func (b SizeBound) Of(iv *interval.Interval) bool {
	return iv.Prefill || b[Start{iv.Workload, iv.Instance}]
}

// NewTimeline reads events, which need not be sorted. recorded is the end of all other data in the record: spans that were
// still open when the program died last until then, not until the last event.
func NewTimeline(events []interval.Event, recorded int64) *Timeline {
	t := &Timeline{events: slices.Clone(events)}
	slices.SortStableFunc(t.events, func(a, b interval.Event) int { return cmp.Compare(a.AtNanos, b.AtNanos) })
	if n := len(t.events); n > 0 {
		t.EndNanos = max(t.events[n-1].AtNanos, recorded)
	}
	openPhases, openStarts := map[string]int{}, map[Start]int{}
	for _, e := range t.events {
		key := Start{e.Workload, e.Instance}
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
				s := &t.Starts[i]
				s.ToNanos, s.Ended, s.Error, s.Stopped = e.AtNanos, true, e.Error, e.Stopped
				delete(openStarts, key)
			}
		}
	}
	return t
}

// Events returns all events in the order of time. The caller does not change them.
func (t *Timeline) Events() []interval.Event { return t.events }

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

// incomplete reports whether a start or a prefill is known to have left work undone: it failed, the run itself powered off one
// of its VMs, or it has no end.
func (t *Timeline) incomplete(s Start, prefill bool) bool {
	open := false
	for i := range t.events {
		e := &t.events[i]
		if e.Workload != s.Workload || e.Instance != s.Instance || e.Prefill != prefill {
			continue
		}
		switch {
		case e.CutByRun, e.Kind == interval.EventWorkloadEnd && e.Error != "":
			return true
		case e.Kind == interval.EventWorkloadStart:
			open = true
		case e.Kind == interval.EventWorkloadEnd:
			open = false
		}
	}
	return open
}
