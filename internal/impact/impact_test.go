package impact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// course is a synthetic run of one workload "W", whose phase lasts as long as the load. All times are in seconds.
type course struct {
	vms     []string
	seconds int
	phase   float64 // when the run phase begins; the load begins before it
	events  []interval.Event
	// operations of a VM in a second; negative for a second without an interval.
	operations func(vm string, second int) int
	// change edits an interval before it is added; nil leaves all unchanged.
	change func(iv *interval.Interval)
	bytes  int // of one operation
}

func (c *course) impacts() []result.Impact {
	end := int64(c.seconds) * 1e9
	events := []interval.Event{
		{Kind: interval.EventWorkloadStart, Phase: "run", Workload: "W", Group: "G", Instance: 1},
		{AtNanos: int64(c.phase * 1e9), Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: end, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "W", Group: "G", Instance: 1},
		{AtNanos: end, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	t := analysis.NewTimeline(append(events, c.events...), 0)
	grid, m, stalls := analysis.NewGrid(int64(c.phase*1e9), end), impact.New(t), analysis.Stalls{}
	for _, vm := range c.vms {
		var waited time.Duration // since the last operation
		for s := range c.seconds {
			n := c.operations(vm, s)
			if n < 0 {
				continue
			}
			slowest := time.Millisecond + waited
			if waited += time.Second; n > 0 {
				waited = 0
			}
			h := &stat.Histogram{}
			h.RecordN(uint64(time.Millisecond), uint64(max(n-1, 0)))
			if n > 0 {
				h.Record(uint64(slowest))
			}
			iv := interval.Interval{Workload: "W", Group: "G", VM: vm, Instance: 1, Sequence: int64(s), StartNanos: int64(s) * 1e9,
				LengthNanos: 1e9, Final: s == c.seconds-1}
			iv.Directions[interval.Read] = interval.Traffic{Operations: uint64(n), Bytes: uint64(n * max(c.bytes, 4096)), Service: h}
			if c.change != nil {
				c.change(&iv)
			}
			grid.Add(&iv)
			m.Add(&iv)
			m.AddLatency(&iv)
			stalls.Add(&iv)
		}
	}
	grid.Close()
	return m.List(grid, &stalls)
}

// step is a step of the run phase.
func step(label string, id int, from, to float64) []interval.Event {
	return []interval.Event{
		{AtNanos: int64(from * 1e9), Kind: interval.EventStepStarted, Phase: "run", Step: "x.Do", StepID: id, Label: label},
		{AtNanos: int64(to * 1e9), Kind: interval.EventStepEnded, Phase: "run", Step: "x.Do", StepID: id, Label: label},
	}
}

// operated is an operation on a subject within a step.
func operated(id int, op interval.Operation, subject string, from, to float64) []interval.Event {
	e := interval.Event{AtNanos: int64(from * 1e9), Kind: interval.EventOperationStarted, Phase: "run", Operation: op, OperationID: id, Subject: subject}
	end := e
	end.AtNanos, end.Kind = int64(to*1e9), interval.EventOperationEnded
	return []interval.Event{e, end}
}

// noisy are operations around a mean with a relative deviation, each second depending on the previous one.
func noisy(seed uint64, mean, deviation, correlation float64) func() float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	state := r.NormFloat64()
	return func() float64 {
		v := mean * (1 + deviation*state)
		state = correlation*state + math.Sqrt(1-correlation*correlation)*r.NormFloat64()
		return v
	}
}

// runsOf is how many stable series are tried.
func runsOf() int {
	if testing.Short() {
		return 100
	}
	return 200
}

// TestStableSeriesClaimNoDip: of stable series with noise of which each second depends on the previous one, at most 5 % claim a dip.
func TestStableSeriesClaimNoDip(t *testing.T) {
	for _, correlation := range []float64{0, 0.5, 0.9} {
		for _, length := range []int{60, 300} {
			claims, runs := 0, runsOf()
			for seed := range uint64(runs) {
				next := noisy(seed, 5000, 0.05, correlation)
				at := float64(length) / 3
				c := course{vms: []string{"a"}, seconds: length, events: step("nothing", 1, at+0.3, at+0.4),
					operations: func(string, int) int { return max(0, int(next())) }}
				if l := c.impacts()[0].Loads[0]; l.LivedOn.Dip.Seen {
					claims++
				}
			}
			if t.Logf("correlation %g, %d s: %d of %d", correlation, length, claims, runs); claims > runs/20 {
				t.Errorf("correlation %g, %d s: %d of %d stable series claim a dip (seeds 0 to %d)", correlation, length, claims, runs, runs-1)
			}
		}
	}
}

// TestRoughSeriesClaimNoDip: nor do series whose noise has heavy tails, is skewed downwards, or counts few operations.
func TestRoughSeriesClaimNoDip(t *testing.T) {
	for name, value := range map[string]func(r *rand.Rand) float64{
		"heavy tails": func(r *rand.Rand) float64 { // Student's t with four degrees of freedom
			squares := 0.0
			for range 4 {
				x := r.NormFloat64()
				squares += x * x
			}
			return 5000 * (1 + 0.03*r.NormFloat64()/math.Sqrt(squares/4))
		},
		"skewed": func(r *rand.Rand) float64 { return 5000 * (1.2 - 0.1*math.Exp(0.6*r.NormFloat64())) },
		"counts": func(r *rand.Rand) float64 { return math.Round(40 + math.Sqrt(40)*r.NormFloat64()) },
		"rate with rare slips": func(r *rand.Rand) float64 {
			if r.Float64() < 0.003 {
				return 36
			}
			return 40
		},
	} {
		claims, runs := 0, runsOf()
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 4))
			c := course{vms: []string{"a"}, seconds: 300, events: step("nothing", 1, 100.3, 100.4),
				operations: func(string, int) int { return max(0, int(value(r))) }}
			if c.impacts()[0].Loads[0].LivedOn.Dip.Seen {
				claims++
			}
		}
		if t.Logf("%s: %d of %d", name, claims, runs); claims > runs/20 {
			t.Errorf("%s: %d of %d stable series claim a dip (seeds 0 to %d)", name, claims, runs, runs-1)
		}
	}
}

// TestEveryCourseHasAScore: whatever the seconds are, a dip has a begin before its end and contains its deepest stretch.
func TestEveryCourseHasAScore(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		length, rough := 30+r.IntN(150), r.Float64()
		at := float64(r.IntN(length)) + r.Float64()*0.9
		c := course{vms: []string{"a", "b"}, seconds: length, events: step("x", 1, at, at+r.Float64()*20), operations: func(string, int) int {
			switch {
			case r.Float64() < 0.05*rough:
				return -1
			case r.Float64() < 0.2*rough:
				return 0
			}
			return int(2000 * (1 - rough*r.Float64()))
		}}
		for _, i := range c.impacts() {
			s := i.Loads[0].LivedOn
			if d := &s.Dip; d.Seen && (d.FromNanos >= d.ToNanos || d.AtNanos < d.FromNanos || d.AtNanos >= d.ToNanos || d.Depth <= 0 || d.Depth > 1 || d.Seconds == 0) {
				t.Errorf("seed %d: %+v", seed, d)
			}
			if s.Unknown == "" && s.Within5.Nanos == nil && s.Within5.Unknown == "" {
				t.Errorf("seed %d: %+v", seed, s.Within5)
			}
			impact.Sentence(&i)
		}
	}
}

// TestInjectedDips scores 60 random events with a known dip and recovery, to within one second.
func TestInjectedDips(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		mean, deviation := 500+9500*r.Float64(), 0.002+0.02*r.Float64()
		next := noisy(seed, mean, deviation, 0.5*r.Float64())
		at, length, depth := 60+r.IntN(60), 1+r.IntN(40), 0.3+0.7*r.Float64()
		c := course{vms: []string{"a"}, seconds: 240, events: step("dip", 1, float64(at), float64(at)+0.2),
			operations: func(_ string, s int) int {
				n := next()
				if s >= at && s < at+length {
					n *= 1 - depth
				}
				return max(0, int(math.Round(n)))
			}}
		s := c.impacts()[0].Loads[0].LivedOn
		name := fmt.Sprintf("seed %d: %d s of %.0f %%: %+v", seed, length, 100*depth, s.Dip)
		if !s.Dip.Seen || math.Abs(float64(s.Dip.Depth)-depth) > 4*deviation || math.Abs(1-float64(s.Dip.Mean)/mean-depth) > 3*deviation {
			t.Errorf("%s: depth", name)
		}
		if off := float64(s.Dip.ToNanos-s.Dip.FromNanos)/1e9 - float64(length); math.Abs(off) > 1 {
			t.Errorf("%s: length off by %g s", name, off)
		}
		for _, back := range []result.ImpactBack{s.Within5, s.Within10} {
			if back.Nanos == nil || math.Abs(float64(*back.Nanos)/1e9-float64(length)) > 1 {
				t.Errorf("%s: back %v", name, back)
			}
		}
		if want := mean * depth * float64(length); math.Abs(float64(s.Lost.Operations)-want) > 2*float64(s.Lost.UncertainOperations)+mean*0.02 {
			t.Errorf("%s: lost %.0f ± %.0f, want %.0f", name, s.Lost.Operations, s.Lost.UncertainOperations, want)
		}
		if depth < 1 && s.Stall.Nanos > 0 && !math.IsNaN(depth) && int(mean*(1-depth)) > 0 {
			t.Errorf("%s: stall %+v", name, s.Stall)
		}
	}
}

func only(t *testing.T, c course) *result.Impact {
	t.Helper()
	list := c.impacts()
	if len(list) != 1 || len(list[0].Loads) != 1 {
		t.Fatalf("impacts %+v", list)
	}
	return &list[0]
}

// TestFirstIOOfLoadsThatGoOn: the first interval that begins after an event is up to a second later, but I/O went on before.
func TestFirstIOOfLoadsThatGoOn(t *testing.T) {
	c := course{vms: []string{"a", "b"}, seconds: 100, events: step("vms.Snapshot", 1, 50.1, 50.2), operations: func(string, int) int { return 1000 },
		change: func(iv *interval.Interval) {
			iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: 1e6}, {FromNanos: 250e6, ToNanos: 290e6}, {FromNanos: 999e6, ToNanos: 1e9}}
		}}
	if s := only(t, c).Loads[0].LivedOn; s.FirstIONanos == nil || *s.FirstIONanos != s.Stall.Nanos || s.Stall.Nanos != 40e6 {
		t.Errorf("%+v", s)
	}
}

// TestWhoLostIt: the VM on the node that lost its power is gone for 41 s, the others lose one per cent.
func TestWhoLostIt(t *testing.T) {
	events := []interval.Event{{Kind: interval.EventPlaced, Subject: "a", Node: "n1"}, {Kind: interval.EventPlaced, Subject: "b", Node: "n2"},
		{Kind: interval.EventPlaced, Subject: "c", Node: "n3"}}
	events = append(events, step("nodes.PowerOff 0", 1, 100, 101)...)
	events = append(events, operated(1, interval.OperationNodeOff, "n1", 100, 101)...)
	events = append(events, step("nodes.PowerOn 0", 2, 120, 121)...)
	events = append(events, operated(2, interval.OperationNodeOn, "n1", 120, 121)...)
	next := noisy(1, 1000, 0.002, 0)
	c := course{vms: []string{"a", "b", "c"}, seconds: 300, events: events, operations: func(vm string, s int) int {
		n := next()
		switch {
		case vm == "a" && s >= 100 && s < 141:
			return -1
		case vm != "a" && s >= 100 && s < 103:
			n *= 0.8
		case vm != "a" && s >= 103:
			n *= 0.99
		}
		return int(n)
	}}
	list := c.impacts()
	if len(list) != 2 {
		t.Fatalf("%d impacts", len(list))
	}
	for i := range list {
		t.Log(impact.Sentence(&list[i]))
	}
	l := &list[0].Loads[0]
	if l.TakenAway == nil || l.TakenAway.Count != 1 || l.LivedOn.Count != 2 || list[0].Kind != result.ImpactNodeOff {
		t.Fatalf("%+v", list[0])
	}
	if took := l.TakenAway.Stall.Nanos; took != 41e9 || *l.TakenAway.FirstIONanos != 41e9 || *l.TakenAway.Within5.Nanos != 41e9 {
		t.Errorf("taken away: %+v", l.TakenAway)
	}
	if *l.LivedOn.Within5.Nanos != 3e9 || math.Abs(float64(l.LivedOn.Level)/2000-0.987) > 0.003 {
		t.Errorf("lived on: %+v", l.LivedOn)
	}
	if !strings.HasPrefix(impact.Sentence(&list[0]), "Power cut of n1: the 2 VMs on other nodes (W) lost") {
		t.Error(impact.Sentence(&list[0]))
	}
}
