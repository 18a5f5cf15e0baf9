package session_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Where VMs differ, the roll-up names every engine once: the planned one for VMs that said nothing else.
func TestEnginesOfOneLoad(t *testing.T) {
	const planned, psync = "native io_uring", "native psync (io_uring refused: off)"
	told := func(vm, engine string, instance int, prefill bool) interval.Event {
		return interval.Event{Kind: interval.EventEngine, Workload: "OLTP", Group: "g", Instance: instance, Prefill: prefill, Subject: vm, Engine: engine}
	}
	for name, c := range map[string]struct {
		events []interval.Event
		want   string
	}{
		"as planned":       {nil, planned},
		"one of two VMs":   {[]interval.Event{told("a", psync, 1, false)}, planned + result.EngineSeparator + psync},
		"both, alike":      {[]interval.Event{told("b", psync, 1, false), told("a", psync, 1, false)}, psync},
		"both, unlike":     {[]interval.Event{told("b", "z", 1, false), told("a", "y", 1, false)}, "y" + result.EngineSeparator + "z"},
		"another start":    {[]interval.Event{told("a", psync, 2, false)}, planned},
		"only its prefill": {[]interval.Event{told("a", psync, 1, true)}, planned},
	} {
		t.Run(name, func(t *testing.T) {
			b := record(t, c.events, []interval.Interval{second("a", 0, 10, 1e6), second("b", 0, 10, 1e6)}, nil)
			loads := evaluate(t, b).Loads
			if len(loads) != 1 || loads[0].Engine != c.want {
				t.Errorf("loads %+v, want engine %q", loads, c.want)
			}
		})
	}
}
