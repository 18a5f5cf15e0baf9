package evaluate_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// If VMs differ, the roll-up lists every engine once: the planned engine for VMs that reported no other.
func TestEnginesOfOneLoad(t *testing.T) {
	named := func(name string) interval.Engine { return interval.Engine{Name: name} }
	planned := interval.Engine{Name: "native", Loop: interval.LoopClosed, Backends: []string{"io_uring"}}
	psync := interval.Engine{Name: "native", Backends: []string{"psync"}, Fallback: &interval.Fallback{From: "io_uring", Why: "off"}}
	told := func(vm string, engine interval.Engine, instance int, prefill bool) interval.Event {
		return interval.Event{Kind: interval.EventEngine, Workload: "OLTP", Group: "g", Instance: instance, Prefill: prefill, Subject: vm, Engine: &engine}
	}
	for name, c := range map[string]struct {
		events []interval.Event
		want   []interval.Engine
	}{
		"as planned":       {nil, []interval.Engine{planned}},
		"one of two VMs":   {[]interval.Event{told("a", psync, 1, false)}, []interval.Engine{planned, psync}},
		"both, alike":      {[]interval.Event{told("b", psync, 1, false), told("a", psync, 1, false)}, []interval.Engine{psync}},
		"both, unlike":     {[]interval.Event{told("b", named("z"), 1, false), told("a", named("y"), 1, false)}, []interval.Engine{named("y"), named("z")}},
		"another start":    {[]interval.Event{told("a", psync, 2, false)}, []interval.Engine{planned}},
		"only its prefill": {[]interval.Event{told("a", psync, 1, true)}, []interval.Engine{planned}},
	} {
		t.Run(name, func(t *testing.T) {
			b := record(t, c.events, []interval.Interval{second("a", 0, 10, 1e6), second("b", 0, 10, 1e6)}, nil)
			loads := evaluated(t, b).Loads
			if len(loads) != 1 || !reflect.DeepEqual(loads[0].Engines, c.want) {
				t.Errorf("loads %+v, want engines %v", loads, c.want)
			}
		})
	}
}

// However many VMs differ, all of their notes come through to findings.
func TestFourNotesHaveFourFindings(t *testing.T) {
	var events []interval.Event
	var intervals []interval.Interval
	for i, n := range []interval.EngineNote{
		{Code: interval.NoteBuffered, Text: "no direct access"}, {Code: interval.NoteCached, Text: "invalidate=0"},
		{Code: interval.NoteUnwritten, Text: "all of /dev/sdb"}, {Code: interval.NoteCached, Text: "pre_read=1"},
	} {
		e := interval.Event{Kind: interval.EventEngine, Workload: "OLTP", Group: "g", Instance: 1, Subject: fmt.Sprint("vm", i)}
		e.Engine = &interval.Engine{Name: "native", Backends: []string{"io_uring"}, Notes: []interval.EngineNote{n}}
		events, intervals = append(events, e), append(intervals, second(e.Subject, 0, 10, 1e6))
	}
	codes := map[string]int{}
	for _, f := range evaluated(t, record(t, events, intervals, nil)).Findings {
		codes[f.Code]++
	}
	if codes["engine-fallback"] != 1 || codes["cache-suspected"] != 3 {
		t.Errorf("findings %v", codes)
	}
}
