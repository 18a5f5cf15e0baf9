package impact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// exact are seconds of 1,000 operations, except for those from a second to another.
func exact(from, to, n int) func(string, int) int {
	return func(_ string, s int) int {
		if s >= from && s < to {
			return n
		}
		return 1000
	}
}

// TestAreaByHand: without noise, depth, level and area are those of arithmetic, with operations made up for at once.
func TestAreaByHand(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		at, length, low := 60+r.IntN(30), 1+r.IntN(30), r.IntN(600)
		made := r.IntN(2) * 2000 // operations made up for in the second after the dip
		c := course{vms: []string{"a"}, seconds: 200, events: step("dip", 1, float64(at)+r.Float64()*0.5, float64(at)+0.9),
			operations: func(_ string, s int) int {
				switch {
				case s >= at && s < at+length:
					return low
				case s == at+length:
					return 1000 + made
				}
				return 1000
			}}
		s := only(t, c).Loads[0].LivedOn
		want := (1000-low)*length - made
		if float64(s.Lost.Operations) != float64(want) || math.Abs(float64(s.Dip.Depth)-1+float64(low)/1000) > 1e-9 {
			t.Errorf("seed %d: lost %v of %d, depth %v of %g", seed, s.Lost.Operations, want, s.Dip.Depth, 1-float64(low)/1000)
		}
		if s.Dip.Seconds != length || s.Dip.FromNanos != int64(at)*1e9 || s.Dip.ToNanos != int64(at+length)*1e9 {
			t.Errorf("seed %d: dip %+v, want %d s from %d", seed, s.Dip, length, at)
		}
		seconds := 200 - 1 - at // the last interval of a load is not drawn
		if level := 1000 - float64(want)/float64(seconds); math.Abs(float64(s.Level)-level) > level*0.01 {
			t.Errorf("seed %d: level %v, want %g", seed, s.Level, level)
		}
	}
}

// TestEventsAtTheBorders: without a baseline, or without seconds after it, an event has no rates, and says why.
func TestEventsAtTheBorders(t *testing.T) {
	for _, c := range []struct {
		from    float64
		unknown string
	}{
		{0.5, "less than 10 s of load"}, {8, "less than 10 s of load"}, {10.5, ""}, {99.5, ""}, {95, ""}, {97, ""},
	} {
		s := only(t, course{vms: []string{"a"}, seconds: 100, events: step("x", 1, c.from, c.from+0.1), operations: exact(0, 0, 0)}).Loads[0].LivedOn
		if c.unknown == "" && s.Unknown != "" || !strings.Contains(s.Unknown, c.unknown) {
			t.Errorf("at %g s: %q, want %q", c.from, s.Unknown, c.unknown)
		}
		if back := s.Within5.Nanos; (back == nil) != (c.unknown != "" || c.from > 95) {
			t.Errorf("at %g s: back %+v", c.from, s.Within5)
		}
		if c.unknown != "" && (s.Within5.Nanos != nil || s.Within5.Unknown == "" || !math.IsNaN(float64(s.Lost.Operations))) {
			t.Errorf("at %g s: %+v", c.from, s)
		}
	}
}

// TestOverlappingEvents: the second of two events is compared with the time before both, and the sentences say so.
func TestOverlappingEvents(t *testing.T) {
	events := append(step("first", 1, 60, 90), step("second", 2, 63, 64)...)
	list := (&course{vms: []string{"a"}, seconds: 150, events: events, operations: exact(60, 80, 500)}).impacts()
	if len(list) != 2 {
		t.Fatalf("%d impacts", len(list))
	}
	for i, other := range []string{"second", "first"} {
		if got := list[i].Overlaps; !slices.Equal(got, []string{other}) {
			t.Errorf("%s overlaps %q", list[i].Event, got)
		}
		s := list[i].Loads[0].LivedOn
		if s.Baseline.ToNanos != 60e9 || math.Abs(float64(s.Dip.Depth)-0.5) > 0.01 {
			t.Errorf("%s: %+v", list[i].Event, s)
		}
		if text := impact.Sentence(&list[i]); !strings.HasSuffix(text, "overlaps with "+other) {
			t.Error(text)
		}
	}
	if back := list[0].Loads[0].LivedOn.Within5.Nanos; back == nil || *back != 20e9 {
		t.Errorf("back after %v", back)
	}
}

// TestVMsThatDie: a VM that an event did not take away and that delivers nothing more did nothing; one that is silent for a while is
// unknown for that time.
func TestVMsThatDie(t *testing.T) {
	run := func(silent func(s int) bool) *result.ImpactScore {
		c := course{vms: []string{"a", "b"}, seconds: 150, events: step("x", 1, 60, 61), operations: func(vm string, s int) int {
			if vm == "b" && silent(s) {
				return -1
			}
			return 1000
		}}
		return only(t, c).Loads[0].LivedOn
	}
	dead := run(func(s int) bool { return s >= 70 })
	if dead.Vanished != 1 || math.Abs(float64(dead.Dip.Depth)-0.5) > 0.01 || !dead.Stall.Open || dead.Stall.Nanos != 80e9 || dead.Within10.Nanos != nil {
		t.Errorf("dead: %+v", dead)
	}
	missing := run(func(s int) bool { return s >= 70 && s < 75 })
	if missing.Vanished != 0 || missing.Dip.Seen || missing.MissingSeconds != 5 || missing.Stall.Nanos >= 1e9 {
		t.Errorf("missing: %+v", missing)
	}
}

// TestLoadsThatEnd: a VM whose load has ended lost nothing, and the end of the load ends the time looked at.
func TestLoadsThatEnd(t *testing.T) {
	c := course{vms: []string{"a", "b"}, seconds: 150, events: step("x", 1, 60, 61), operations: func(vm string, s int) int {
		if vm == "b" && s >= 100 {
			return -1
		}
		return 1000
	}, change: func(iv *interval.Interval) { iv.Final = iv.Final || iv.VM == "b" && iv.Sequence == 99 }}
	if s := only(t, c).Loads[0].LivedOn; s.Dip.Seen || s.Vanished != 0 || s.MissingSeconds != 0 || s.Within5.Nanos == nil {
		t.Errorf("%+v", s)
	}
}

// TestPausedVMs: a second in which the generator itself did not run is a stall, joined across seconds.
func TestPausedVMs(t *testing.T) {
	c := course{vms: []string{"a"}, seconds: 150, events: step("x", 1, 60, 61), operations: func(_ string, s int) int {
		return map[int]int{62: 600, 63: 0, 64: 800}[s] + 1000*min(1, max(62-s, 0)+max(s-64, 0))
	}, change: func(iv *interval.Interval) {
		iv.StalledNanos = map[int64]int64{62: 400e6, 63: 1e9, 64: 200e6}[iv.Sequence]
	}}
	i := only(t, c)
	s := i.Loads[0].LivedOn
	if s.Stall.PausedNanos != 1.6e9 || s.Stall.Nanos != 1.6e9 || s.Dip.Depth != 1 {
		t.Errorf("%+v", s.Stall)
	}
	if text := impact.Sentence(i); !strings.Contains(text, "longest stall 1.6 s (load generator paused)") {
		t.Error(text)
	}
}

// TestStalls: an engine that records gaps knows a stall exactly, another one only between bounds.
func TestStalls(t *testing.T) {
	quiet := func(iv *interval.Interval) {
		iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 999e6, ToNanos: 1e9}}
		switch iv.Sequence {
		case 61:
			iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 500e6, ToNanos: 1e9}}
		case 62:
			iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 100e6}, {FromNanos: 999e6, ToNanos: 1e9}}
		}
	}
	slow := func(iv *interval.Interval) {
		if iv.Sequence == 62 {
			iv.Directions[interval.Read].Service.Record(uint64(600 * time.Millisecond))
		}
	}
	for name, c := range map[string]struct {
		change      func(iv *interval.Interval)
		least, most int64
		text        string
	}{
		"gaps":  {quiet, 600e6, 600e6, "longest stall 0.6 s"},
		"none":  {slow, 0, 600e6, "no stall longer than 0.6 s"},
		"quiet": {func(*interval.Interval) {}, 0, 0, ""},
	} {
		i := only(t, course{vms: []string{"a"}, seconds: 150, events: step("x", 1, 60, 60.1), operations: exact(61, 63, 700), change: c.change})
		s := i.Loads[0].LivedOn.Stall
		if s.AtLeastNanos != c.least || math.Abs(float64(s.Nanos-c.most)) > 0.01*float64(c.most) || !strings.Contains(impact.Sentence(i), c.text) {
			t.Errorf("%s: %+v, %s", name, s, impact.Sentence(i))
		}
	}
}

// TestNothingToLose: a load that did nothing before the event has no cost.
func TestNothingToLose(t *testing.T) {
	i := only(t, course{vms: []string{"a"}, seconds: 100, events: step("x", 1, 50, 51), operations: func(string, int) int { return 0 }})
	if s := i.Loads[0].LivedOn; !strings.Contains(s.Unknown, "nothing before the event") || !strings.Contains(impact.Sentence(i), "cost unknown") {
		t.Errorf("%+v", s)
	}
}

// TestBandwidth: a load of large operations is judged by bandwidth.
func TestBandwidth(t *testing.T) {
	c := course{vms: []string{"a"}, seconds: 150, events: step("x", 1, 60, 60.1), operations: exact(60, 70, 500), bytes: 1 << 20}
	if l := only(t, c).Loads[0]; l.Quantity != "bandwidth" || l.LivedOn.Baseline.Mean != 1000<<20 || l.LivedOn.Lost.Operations != 5000 {
		t.Errorf("%+v", l)
	}
}

// TestNeighbor: a second workload is scored over all of the time that it ran.
func TestNeighbor(t *testing.T) {
	c := course{vms: []string{"a"}, seconds: 200, operations: exact(60, 120, 800), events: []interval.Event{
		{AtNanos: 60e9, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "N", Group: "H", Instance: 1},
		{AtNanos: 120e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "N", Group: "H", Instance: 1},
	}}
	i := only(t, c)
	s := i.Loads[0].LivedOn
	if i.Kind != result.ImpactNeighbor || i.Loads[0].UntilNanos != 120e9 || s.Level != 800 || s.Lost.Operations != 12000 || s.Within5.Nanos != nil {
		t.Errorf("%+v", s)
	}
	want := "Neighbor N: W lost 20 % (1k to 800) for 1 m, not back within 5 %, 12,000 operations fewer than the baseline"
	if got := impact.Sentence(i); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	i.Event = "Noisy Neighbor"
	if got := impact.Title(i); got != "Noisy Neighbor" {
		t.Errorf("title %q", got)
	}
}

// TestLatencyUnderARate: IOPS stay at the rate. The p99 is named if it left the range that it has in the baseline by itself, and only then.
func TestLatencyUnderARate(t *testing.T) {
	for name, c := range map[string]struct {
		before func(second int) float64 // slow operations, in milliseconds
		during float64
		want   string
	}{
		"half as much again": {func(int) float64 { return 2 }, 3, "p99 response time from 2 ms (2 ms to 2 ms by itself) to 3 ms"},
		"half":               {func(int) float64 { return 2 }, 1, "p99 response time from 2 ms (2 ms to 2 ms by itself) to 1 ms"},
		"a little":           {func(int) float64 { return 2 }, 2.4, ""},
		"as before":          {func(s int) float64 { return 2 + 4*float64(s/8%2) }, 7, ""},
		"twice its worst":    {func(s int) float64 { return 2 + 4*float64(s/8%2) }, 12, "(2 ms to 6 ms by itself) to 12 ms"},
	} {
		run := course{vms: []string{"a"}, seconds: 130, operations: exact(0, 0, 0), events: step("cut", 1, 60, 100), change: func(iv *interval.Interval) {
			slow := c.before(int(iv.StartNanos / 1e9))
			if iv.StartNanos >= 60e9 {
				slow = c.during
			}
			h := &stat.Histogram{}
			h.RecordN(uint64(100*time.Microsecond), 950)
			h.RecordN(uint64(slow*1e6), 50)
			iv.Directions[interval.Read].Response = h
		}}
		got := impact.Sentence(only(t, run))
		if !strings.Contains(got, "no dip seen") || !strings.Contains(got, c.want) || strings.Contains(got, "p99") != (c.want != "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestLateLatencyUnderARate: an event of a moment, and operations that wait a while after it. The rate catches up.
func TestLateLatencyUnderARate(t *testing.T) {
	for name, c := range map[string]struct {
		from, to float64 // slow operations, seconds
		slow     float64 // in milliseconds
		want     string
	}{
		"late":            {74, 78, 900, "p99 response time from 2 ms (2 ms to 2 ms by itself) to 900 ms after it"},
		"late and little": {74, 78, 4, ""},
		"too short":       {74, 75, 900, ""}, // a hiccup of a second
		"never":           {0, 0, 900, ""},
	} {
		run := course{vms: []string{"a"}, seconds: 130, operations: exact(0, 0, 0), events: step("cut", 1, 60, 60.3), change: func(iv *interval.Interval) {
			slow := 2.0
			if at := float64(iv.StartNanos) / 1e9; at >= c.from && at < c.to {
				slow = c.slow
			}
			h := &stat.Histogram{}
			h.RecordN(uint64(100*time.Microsecond), 600)
			h.RecordN(uint64(slow*1e6), 400)
			iv.Directions[interval.Read].Response = h
		}}
		got := impact.Sentence(only(t, run))
		if !strings.Contains(got, "no dip seen") || !strings.Contains(got, c.want) || strings.Contains(got, "p99") != (c.want != "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestRounds: a step that takes snapshots again and again has an event for each round.
func TestRounds(t *testing.T) {
	events := step("snapshots", 1, 0.1, 199)
	for round := range 3 {
		for vm := range 2 {
			at := 50*float64(round+1) + float64(vm)
			events = append(events, operated(1+2*round+vm, interval.OperationSnapshot, fmt.Sprint("vm", vm), at, at+0.5)...)
		}
	}
	list := (&course{vms: []string{"vm0", "vm1"}, seconds: 200, events: events, operations: func(_ string, s int) int {
		if s%50 == 0 && s > 0 {
			return 100
		}
		return 1000
	}}).impacts()
	if len(list) != 3 {
		t.Fatalf("%d impacts", len(list))
	}
	for i := range list {
		s := list[i].Loads[0].LivedOn
		if list[i].VMs != 2 || list[i].Event != "snapshots" || float64(s.Dip.Depth) != 0.9 || *s.Within5.Nanos != 1e9 || len(list[i].Overlaps) != 0 {
			t.Errorf("%+v\n%+v", list[i], s)
		}
	}
}

// TestCloseRounds: rounds that are too close to be events of their own are counted, and not the VMs of each as further VMs.
func TestCloseRounds(t *testing.T) {
	events := step("snapshots", 1, 100, 130)
	for round := range 8 {
		of := operated(1+round, interval.OperationSnapshot, "", 100+3*float64(round), 101+3*float64(round))
		of[0].Count, of[1].Count = 2, 2
		events = append(events, of...)
	}
	i := only(t, course{vms: []string{"vm0", "vm1"}, seconds: 200, events: events, operations: func(string, int) int { return 1000 }})
	if title := impact.Title(i); i.VMs != 2 || title != "8 snapshots of 2 VMs" {
		t.Errorf("%d VMs: %s", i.VMs, title)
	}
}

// TestLostAgents: agents that are lost together are one event, and those of VMs that the run took away are none.
func TestLostAgents(t *testing.T) {
	c := course{vms: []string{"a", "b", "c"}, seconds: 150, operations: func(vm string, s int) int {
		if vm != "c" && s >= 60 && s < 80 {
			return 0
		}
		return 1000
	}, events: []interval.Event{
		{AtNanos: 60e9, Kind: interval.EventAgentSilent, Phase: "run", Subject: "a"},
		{AtNanos: 61e9, Kind: interval.EventAgentSilent, Phase: "run", Subject: "b"},
		{AtNanos: 80e9, Kind: interval.EventAgentBack, Phase: "run", Subject: "a"},
		{AtNanos: 80e9, Kind: interval.EventAgentBack, Phase: "run", Subject: "b"},
	}}
	i := only(t, c)
	l := &i.Loads[0]
	if i.Kind != result.ImpactAgentLost || l.TakenAway.Count != 2 || l.TakenAway.Stall.AtLeastNanos != 20e9 || l.LivedOn.Dip.Seen || i.ToNanos != 80e9 {
		t.Errorf("%+v", i)
	}
	want := "Lost connection to a, b: the 1 other VM (W): no dip seen (1k to 1k; would have seen 2.1 % over 10 s); " +
		"2 VMs without connection did nothing for 20 s, back within 5 % after 20 s, 40,000 operations fewer than the baseline"
	if got := impact.Sentence(i); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAllVMsLost: without VMs that live on, the sentence is about those that were taken away; a load that ends with them has no rates.
func TestAllVMsLost(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPlaced, Subject: "a", Node: "n1"}, {Kind: interval.EventPlaced, Subject: "b", Node: "n1"}}
	events = append(events, step("nodes.PowerOff 0", 1, 60, 61)...)
	events = append(events, operated(1, interval.OperationNodeOff, "n1", 60, 61)...)
	away := course{vms: []string{"a", "b"}, seconds: 150, events: events, operations: func(_ string, s int) int {
		if s >= 60 && s < 90 {
			return -1
		}
		return 1000
	}}
	i := only(t, away)
	want := "Power cut of n1: all 2 VMs of W did nothing for 30 s, back within 5 % after 30 s, 60,000 operations fewer than the baseline"
	if got := impact.Sentence(i); got != want || i.Loads[0].LivedOn != nil {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	away.seconds = 61
	want = "Power cut of n1: the load on all 2 VMs of W ended with it"
	if got := impact.Sentence(only(t, away)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestBurst: steps that follow each other within two seconds are one event, named for the one that says most.
func TestBurst(t *testing.T) {
	events := append(step("move", 1, 60, 60.2), step("nodes.PowerOff 0", 2, 60.3, 60.5)...)
	events = append(events, operated(1, interval.OperationNodeOff, "n1", 60.3, 60.5)...)
	events = append(events, step("other", 3, 60.6, 75)...)
	events = append(events, step("later", 4, 90, 90.1)...)
	list := (&course{vms: []string{"a"}, seconds: 150, events: events, operations: exact(60, 80, 500)}).impacts()
	if len(list) != 2 || !slices.Equal(list[0].With, []string{"nodes.PowerOff 0", "other"}) || list[0].ToNanos != 75e9 || len(list[1].With) != 0 {
		t.Fatalf("%+v", list)
	}
	want := "Power cut of n1 and 2 more steps: W lost 50 % (1k to 500) for 20 s, back within 5 % after 20 s, 10,000 operations fewer than the baseline"
	if got := impact.Sentence(&list[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLoadsOfSetup: a load that began before the run phase is compared with its seconds in that phase.
func TestLoadsOfSetup(t *testing.T) {
	c := course{vms: []string{"a"}, seconds: 150, phase: 40, events: step("x", 1, 60, 61), operations: exact(60, 70, 500)}
	s := only(t, c).Loads[0].LivedOn
	if s.Baseline.FromNanos < 40e9 || s.Baseline.Seconds < 10 || s.Dip.Seconds != 10 || s.Dip.FromNanos != 60e9 || s.Lost.Operations != 5000 {
		t.Errorf("%+v", s)
	}
	c.events = step("x", 1, 45, 46)
	if s := only(t, c).Loads[0].LivedOn; s.Unknown == "" {
		t.Errorf("%+v", s)
	}
}
