package analysis

import (
	"cmp"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

const (
	// windowsMax bounds how many windows a run is divided into; the rest stays one window.
	windowsMax = 100
	// instantShare and instantMax distinguish a step that is a point on the axis from one that has its own window.
	instantMax   = 2 * time.Second
	instantShare = 0.01 // of the phase
)

// Act is a step of the run phase with a label.
type Act struct {
	Label              string
	Workload, Group    string // of a step on one of them
	FromNanos, ToNanos int64
	Simulated          bool
}

// Windows splits the run phase at the labelled steps into the stretches before, during, between and after them. A step that takes
// at most two seconds or a hundredth of the phase, whichever is less, is a point in time and has no separate window. The windows
// cover the phase without gap or overlap.
func (t *Timeline) Windows() []result.Window {
	phase, ok := t.Phase("run")
	if !ok || phase.ToNanos <= phase.FromNanos {
		return nil
	}
	acts := t.Acts()
	shortest := min(int64(instantMax), int64(instantShare*float64(phase.ToNanos-phase.FromNanos)))
	var windows []result.Window
	at, after := phase.FromNanos, ""
	emit := func(to int64, name, before string) {
		// A stretch that is too short for a window belongs to the window before it.
		if n := len(windows); to-at < max(shortest, 1) && n > 0 {
			windows[n-1].ToNanos = max(windows[n-1].ToNanos, to)
		} else if to-at >= max(shortest, 1) {
			windows = append(windows, result.Window{Name: name, FromNanos: at, ToNanos: to, Before: after, After: before})
		} else {
			return // at the very start: the next window begins here
		}
		at = max(at, to)
	}
	for _, a := range acts {
		if len(windows) >= windowsMax-2 {
			break
		}
		emit(a.FromNanos, between(after, a.Label), a.Label)
		if a.ToNanos-a.FromNanos >= shortest && a.ToNanos > at {
			after = a.Label
			emit(a.ToNanos, "during "+a.Label, a.Label)
		}
		after = a.Label
	}
	emit(phase.ToNanos, between(after, ""), "")
	if len(windows) == 0 {
		windows = []result.Window{{Name: "run", FromNanos: phase.FromNanos, ToNanos: phase.ToNanos}}
	}
	windows[len(windows)-1].ToNanos = phase.ToNanos
	return windows
}

func between(after, before string) string {
	switch {
	case after == "" && before == "":
		return "run"
	case after == "":
		return "before " + before
	case before == "":
		return "after " + after
	}
	return "between " + after + " and " + before
}

// Acts lists the steps of the run phase that have a label, in the order of their start.
func (t *Timeline) Acts() []Act {
	phase, _ := t.Phase("run")
	var acts []Act
	open := map[int]int{}
	for _, e := range t.events {
		if e.Phase != "run" || e.Label == "" || e.AtNanos < phase.FromNanos || e.AtNanos > phase.ToNanos {
			continue
		}
		switch e.Kind {
		case interval.EventStepStarted:
			open[e.StepID] = len(acts)
			acts = append(acts, Act{Label: e.Label, Workload: e.Workload, Group: e.Group,
				FromNanos: e.AtNanos, ToNanos: phase.ToNanos, Simulated: e.Simulate})
		case interval.EventStepEnded:
			if i, ok := open[e.StepID]; ok {
				acts[i].ToNanos = e.AtNanos
				delete(open, e.StepID)
			}
		}
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return cmp.Compare(a.FromNanos, b.FromNanos) })
	return acts
}
