package evaluate_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
)

// TestNoFalsePass: a latency of which only a lower bound is known meets no threshold of less, however low the bound is.
func TestNoFalsePass(t *testing.T) {
	paced := interval.Event{AtNanos: 1, Kind: interval.EventEngine, Workload: "OLTP", Group: "g", Instance: 1, Subject: "g-0001",
		Engine: &interval.Engine{Name: "fio", Version: "3.33", Loop: interval.LoopPaced}}
	undeclared := paced
	undeclared.Engine = &interval.Engine{Name: "other"}
	// A hidden value is exact, and does not decide because of what was never issued.
	const met, missed, undecided, hidden = "met", "missed", "undecided", "hidden"
	for name, c := range map[string]struct {
		engine *interval.Event
		change func(iv *interval.Interval) // of 100 operations of 10 ms
		want   map[string]string           // by threshold
		bounds []string                    // that are printed as such
		source string
	}{
		"closed": {nil, func(*interval.Interval) {}, map[string]string{"p99 < 100": met, "p99 < 5": missed, "p99 > 5": met}, nil, "response time = service time"},
		// One operation hangs for 4 of 20 s, and the loop issues nothing meanwhile: a fifth of the time is in no percentile.
		"closed loop that hangs": {nil, func(iv *interval.Interval) {
			if iv.Sequence == 7 {
				iv.Directions[interval.Read].Service.Record(4e9)
				iv.Directions[interval.Read].Operations++
			}
		}, map[string]string{
			"p99 < 100": hidden, "p95 < 100": hidden, "median < 100": met, "p99 < 5": missed, "p99 > 5": met,
			"corrected_p99 < 100": missed, "corrected_p99 > 1000": met, "corrected_median < 100": met,
		}, nil, ""},
		"paced": {&paced, func(*interval.Interval) {}, map[string]string{
			"p99 < 100": undecided, "p99 < 5": missed, "p99 > 5": met, "p99 > 100": undecided, "min < 100": undecided,
			"median != 100": undecided, "interval_mean < 100": met,
		}, nil, "response time is not measured"},
		"not declared": {&undeclared, func(*interval.Interval) {}, map[string]string{"p99 < 100": undecided}, nil, "not declared"},
		"half dropped": {nil, func(iv *interval.Interval) { iv.Due, iv.NotIssued = 200, 100 }, map[string]string{
			"p99 < 100": undecided, "mean < 100": undecided, "max < 100": undecided, "median < 100": met, "min < 100": met,
		}, []string{"p95", "p99", "p999", "mean", "max"}, ""},
		"a quarter failed": {nil, func(iv *interval.Interval) {
			iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": 35}
		}, map[string]string{"p99 < 50": undecided, "p99 < 5": missed, "median < 50": met}, []string{"p95", "p99", "p999", "mean", "max"}, ""},
		// They hung for 5 s and failed then: no percentile that falls among them is less.
		"a quarter failed after 5 s": {nil, func(iv *interval.Interval) {
			iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": 35}
			iv.Directions[interval.Read].Failed = &stat.Histogram{}
			iv.Directions[interval.Read].Failed.RecordN(5e9, 35)
		}, map[string]string{"p99 < 50": missed, "p99 > 4900": met, "max < 4900": missed, "mean < 50": missed, "p99 > 6000": undecided, "median < 50": met},
			[]string{"p95", "p99", "p999", "mean", "max"}, ""},
		"hung at the end": {nil, func(iv *interval.Interval) {
			iv.Waiting = &stat.Histogram{}
			iv.Waiting.Record(3e9)
		}, map[string]string{"max < 2000": missed, "max > 2000": met, "max < 4000": undecided, "p99 < 50": met}, []string{"mean", "max"}, ""},
		"two in a thousand failed": {nil, func(iv *interval.Interval) {
			if iv.Sequence%5 == 0 {
				iv.Directions[interval.Write].Errors = map[string]uint64{"EIO": 1}
			}
		}, map[string]string{"p99 < 50": met, "max < 50": undecided}, []string{"p999", "mean", "max"}, ""},
		"waiting at the end": {nil, func(iv *interval.Interval) {
			iv.Backlog = 5000
		}, map[string]string{"median < 50": undecided}, []string{"median", "p95", "p99", "p999", "mean", "max"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events := []interval.Event{
				{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
				{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
			}
			if c.engine != nil {
				events = append(events, *c.engine)
			}
			var intervals []interval.Interval
			for s := range 20 {
				iv := second("g-0001", s, 100, 10*time.Millisecond)
				iv.Final = s == 19
				c.change(&iv)
				intervals = append(intervals, iv)
			}
			r := scenario.Result{Name: "latency", Source: scenario.FromWorkload, Workload: "OLTP", Type: "latency", Aggregate: "mean"}
			for text := range c.want {
				x := scenario.Threshold{Text: text}
				if _, err := fmt.Sscan(text, &x.Statistic, &x.Operator, &x.Value); err != nil {
					t.Fatal(err)
				}
				x.Value *= 1e6
				r.Expect = append(r.Expect, x)
			}
			got := evaluated(t, record(t, events, intervals, nil), r).Results[0]
			for _, check := range got.Checks {
				state := missed
				switch {
				case check.Passed:
					state = met
				case check.Reason != "" && !check.AtLeast:
					state = hidden
				case check.Reason != "":
					state = undecided
				}
				if state != c.want[check.Text] {
					t.Errorf("%s: %+v, want %s", check.Text, check, c.want[check.Text])
				}
			}
			whole := got.Stats[0]
			if fmt.Sprint(whole.AtLeast) != fmt.Sprint(c.bounds) {
				t.Errorf("lower bounds: %q, want %q", whole.AtLeast, c.bounds)
			}
			if !strings.Contains(got.Source, c.source) {
				t.Errorf("source: %q, want %q in it", got.Source, c.source)
			}
		})
	}
}

// TestNothingCompleted: where no operation completed, there is no number, and the threshold says how many there were.
func TestNothingCompleted(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 3e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	for s := range 3 {
		iv := second("g-0001", s, 0, 0)
		iv.Directions[interval.Read] = interval.Traffic{Errors: map[string]uint64{"EIO": 50}}
		intervals = append(intervals, iv)
	}
	s := evaluated(t, record(t, events, intervals, nil), scenario.Result{
		Name: "latency", Source: scenario.FromWorkload, Workload: "OLTP", Type: "latency", Aggregate: "mean",
		Expect: []scenario.Threshold{{Statistic: "p99", Operator: "<", Value: 1e9, Text: "p99 < 1 s"}},
	})
	if c := s.Results[0].Checks[0]; c.Passed || c.Reason == "" || s.Verdict == result.Pass {
		t.Errorf("%s: %+v", s.Verdict, c)
	}
}

// checked evaluates one threshold of the latency of a workload or a group, in a run of 20 s.
func checked(t *testing.T, text string, r scenario.Result, events []interval.Event, intervals []interval.Interval) result.Check {
	t.Helper()
	x := scenario.Threshold{Text: text}
	if _, err := fmt.Sscan(text, &x.Statistic, &x.Operator, &x.Value); err != nil {
		t.Fatal(err)
	}
	if x.Statistic != "cv" {
		x.Value *= 1e6
	}
	r.Name, r.Type, r.Expect = "latency", "latency", []scenario.Threshold{x}
	all := append([]interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}, events...)
	return evaluated(t, record(t, all, intervals, nil), r).Results[0].Checks[0]
}

// seconds are those of a load that a test changes.
func seconds(workload, vm string, change func(iv *interval.Interval)) []interval.Interval {
	var list []interval.Interval
	for s := range 20 {
		iv := second(vm, s, 100, 10*time.Millisecond)
		iv.Workload, iv.Final = workload, s == 19
		if change != nil {
			change(&iv)
		}
		list = append(list, iv)
	}
	return list
}

// driven says which loop drives a workload.
func driven(workload string, loop interval.Loop) interval.Event {
	return interval.Event{AtNanos: 1, Kind: interval.EventEngine, Workload: workload, Group: "g", Instance: 1, Subject: "g-0001",
		Engine: &interval.Engine{Name: "native", Loop: loop}}
}

func scheduled(iv *interval.Interval) {
	d := &iv.Directions[interval.Read]
	d.Response = d.Service
}

// TestSeriesAndLoadsOfOneResult: what one series or load of a result hides, another does not cover.
func TestSeriesAndLoadsOfOneResult(t *testing.T) {
	ofWorkload := scenario.Result{Source: scenario.FromWorkload, Workload: "OLTP"}
	ofGroup := scenario.Result{Source: scenario.FromGroup, Group: "g", Aggregate: "mean"}
	hang := func(iv *interval.Interval) {
		if iv.Sequence == 7 {
			iv.Directions[interval.Read].Service.Record(4e9)
			iv.Directions[interval.Read].Operations++
		}
	}
	fail := func(iv *interval.Interval) {
		iv.Directions[interval.Read] = interval.Traffic{Errors: map[string]uint64{"EIO": 100}}
	}
	t.Run("a VM of an open loop on which nothing completed", func(t *testing.T) {
		c := checked(t, "p99 < 100", ofWorkload, []interval.Event{driven("OLTP", interval.LoopOpen)},
			append(seconds("OLTP", "g-0001", scheduled), seconds("OLTP", "g-0002", fail)...))
		if c.Passed || c.Reason == "" {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a closed loop that hangs beside an open one", func(t *testing.T) {
		events := []interval.Event{driven("OLTP", interval.LoopClosed), driven("other", interval.LoopOpen)}
		intervals := append(seconds("OLTP", "g-0001", hang), seconds("other", "g-0002", scheduled)...)
		if c := checked(t, "p95 < 100", ofGroup, events, intervals); c.Passed || c.Reason == "" {
			t.Errorf("%+v", c)
		}
		if c := checked(t, "corrected_p95 < 100", ofGroup, events, intervals); c.Passed || c.Reason != "" {
			t.Errorf("corrected: %+v", c)
		}
	})
	t.Run("a load whose engine is not known", func(t *testing.T) {
		r := ofWorkload
		r.Workload = "unknown"
		if c := checked(t, "p99 < 100", r, nil, seconds("unknown", "g-0001", nil)); c.Passed || !c.AtLeast {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a paced load that ended before", func(t *testing.T) {
		before := second("g-0001", 0, 100, time.Millisecond)
		before.Workload, before.StartNanos = "fill", -30e9
		c := checked(t, "p99 < 100", ofGroup, []interval.Event{driven("OLTP", interval.LoopClosed), driven("fill", interval.LoopPaced)},
			append([]interval.Interval{before}, seconds("OLTP", "g-0001", nil)...))
		if !c.Passed {
			t.Errorf("%+v", c)
		}
	})
	t.Run("pauses between operations do not count as stalls", func(t *testing.T) {
		slow := func(iv *interval.Interval) {
			h := iv.Directions[interval.Read].Service
			h.Reset()
			h.RecordN(1e6, 9)
			if iv.Sequence%5 == 0 {
				h.Record(200e6) // one in 41: not within p95
			}
			iv.Directions[interval.Read].Operations = h.Count()
		}
		if c := checked(t, "p95 < 50", ofWorkload, nil, seconds("OLTP", "g-0001", slow)); !c.Passed {
			t.Errorf("%+v", c)
		}
	})
	t.Run("value, bound and reason are of one series", func(t *testing.T) {
		most := func(iv *interval.Interval) { iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": 75} }
		slower := func(iv *interval.Interval) {
			h := iv.Directions[interval.Read].Service
			h.Reset()
			h.RecordN(15e6, 100)
		}
		c := checked(t, "p99 < 100", ofWorkload, nil, append(seconds("OLTP", "g-0001", most), seconds("OLTP", "g-0002", slower)...))
		if c.Passed || !c.AtLeast || !near(c.Value, 10e6) || !strings.Contains(c.Reason, "1,500 operations") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("too few operations of a paced load", func(t *testing.T) {
		few := func(iv *interval.Interval) {
			h := iv.Directions[interval.Read].Service
			h.Reset()
			h.Record(1e6)
			iv.Directions[interval.Read].Operations = 1
		}
		c := checked(t, "p99 < 100", ofWorkload, []interval.Event{driven("OLTP", interval.LoopPaced)}, seconds("OLTP", "g-0001", few))
		if c.Passed || c.AtLeast || !strings.Contains(c.Reason, "too few values") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("the scatter of latencies that are not all known", func(t *testing.T) {
		most := func(iv *interval.Interval) { iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": 50} }
		for name, change := range map[string]func(*interval.Interval){"failed": most, "paced": nil} {
			events := []interval.Event{driven("OLTP", interval.LoopClosed)}
			if name == "paced" {
				events = []interval.Event{driven("OLTP", interval.LoopPaced)}
			}
			for _, text := range []string{"cv < 0.5", "cv > 0.5"} {
				if c := checked(t, text, ofWorkload, events, seconds("OLTP", "g-0001", change)); c.Passed || c.Reason == "" || c.AtLeast {
					t.Errorf("%s, %s: %+v", name, text, c)
				}
			}
		}
	})
}

// TestLoadsThatEndWithoutAWord: what was under way when a VM was lost never completed.
func TestLoadsThatEndWithoutAWord(t *testing.T) {
	lost := func(iv *interval.Interval) { iv.Final, iv.Backlog, iv.InFlight = false, 50*uint64(iv.Sequence), 3 }
	r := scenario.Result{Source: scenario.FromWorkload, Workload: "OLTP", Aggregate: "mean"}
	c := checked(t, "p99 < 100", r, nil, seconds("OLTP", "g-0001", lost))
	if c.Passed || !c.AtLeast || !strings.Contains(c.Reason, "953 operations") { // 50 × 19 and 3
		t.Errorf("%+v", c)
	}
	if c := checked(t, "max < 100", r, nil, seconds("OLTP", "g-0001", func(iv *interval.Interval) { iv.Final = false })); c.Passed || c.Reason == "" {
		t.Errorf("not known how many: %+v", c)
	}
}

// TestWindowsOfSplitIntervals: an operation counts in the window in which it began, none is in no window, and the windows add up
// to the whole.
func TestWindowsOfSplitIntervals(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 10.3e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 10.32e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	var intervals []interval.Interval
	at := int64(0)
	for i, length := range []int64{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 300, 20, 680, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000} {
		iv := second("g-0001", 0, 100, 10*time.Millisecond)
		iv.Sequence, iv.StartNanos, iv.LengthNanos, iv.Final = int64(i), at+20e3, length*1e6, i == 21 // a clock that is off by 20 µs
		early := func(fromMillis, toMillis int64, nanos uint64, failed bool) {
			e := interval.Early{FromNanos: fromMillis*1e6 - at, ToNanos: toMillis*1e6 - at}
			for _, d := range []*interval.Traffic{&e.Directions[interval.Read], &iv.Directions[interval.Read]} {
				h := &d.Service
				if failed {
					d.Errors, h = map[string]uint64{"EIO": 1}, &d.Failed
				} else {
					d.Operations++
				}
				if *h == nil {
					*h = &stat.Histogram{}
				}
				(*h).Record(nanos)
			}
			iv.Early = append(iv.Early, e)
		}
		switch i {
		case 11: // just after the step began
			early(-700, 10_300, 50e6, false)
		case 12: // of the time before the step, and while it lasted
			early(-700, 10_300, 400e6, false)
			early(10_300, 10_320, 300e6, false)
		case 14:
			early(10_300, 10_320, 3e9, true)
		}
		at += length * 1e6
		intervals = append(intervals, iv)
	}
	r := scenario.Result{Name: "latency", Type: "latency", Source: scenario.FromWorkload, Workload: "OLTP", Aggregate: "mean"}
	e := evaluated(t, record(t, events, intervals, nil), r).Results[0]
	type row struct{ Count, Unfinished, MaxMillis uint64 }
	got := map[string]row{}
	for _, s := range e.Stats {
		got[s.Window] = row{s.Count, s.Unfinished, uint64(math.Round(float64(s.Max) / 1e6))}
		if s.WithBorders != nil {
			t.Errorf("%q has operations at its borders", s.Window)
		}
	}
	want := map[string]row{"": {2203, 1, 3000}, "before cut": {1102, 0, 400}, "after cut": {1101, 1, 3000}}
	if !maps.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestHangsAtTheEndOfAResult: operations that began within a result and had not completed at its end took at least as long as they
// had waited by then, in the window in which they began.
func TestHangsAtTheEndOfAResult(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 10e9, Kind: interval.EventStepStarted, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 10.1e9, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Label: "cut", StepID: 1},
		{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	for name, c := range map[string]struct {
		age, last int64 // of the operation in the last second; the load goes on after the result, or is lost
		final     bool
		window    string
		want      bool
	}{
		"hung since the last second":  {0.9e9, 25, true, "after cut", false},
		"the other window":            {0.9e9, 25, true, "before cut", true},
		"hung over the step":          {12e9, 25, true, "before cut", false},
		"began before the step":       {12e9, 25, true, "after cut", true},
		"lost":                        {0.9e9, 19, false, "after cut", false},
		"lost, hung over the step":    {12e9, 19, false, "before cut", false},
		"completed before the end":    {0, 25, true, "after cut", true},
		"whole: hung over the step":   {12e9, 25, true, "", false},
		"whole: completed in the end": {0, 25, true, "", true},
	} {
		var intervals []interval.Interval
		for s := range c.last + 1 {
			iv := second("g-0001", int(s), 100, 10*time.Millisecond)
			iv.Final = c.final && s == c.last
			if s == 19 && c.age > 0 || s == 18 {
				iv.InFlight, iv.Waiting = 1, &stat.Histogram{}
				iv.Waiting.Record(uint64(max(c.age, 500e6)))
			}
			intervals = append(intervals, iv)
		}
		r := scenario.Result{Name: "latency", Type: "latency", Source: scenario.FromWorkload, Workload: "OLTP", Aggregate: "mean",
			Expect: []scenario.Threshold{{Statistic: "max", Operator: "<", Value: 0.7e9, Text: "max < 700 ms", Window: c.window}}}
		check := evaluated(t, record(t, events, intervals, nil), r).Results[0].Checks[0]
		if check.Passed != c.want {
			t.Errorf("%s: %+v, want passed: %t", name, check, c.want)
		}
	}
}

// TestStallsAtABorder: operations of the second in which a step begins are in no window, and none of these passes without them.
func TestStallsAtABorder(t *testing.T) {
	events := []interval.Event{
		{AtNanos: 10.5e9, Kind: interval.EventStepStarted, Phase: "run", Step: "vm_group.MigrateGroup", Label: "migration", StepID: 3},
		{AtNanos: 10.6e9, Kind: interval.EventStepEnded, Phase: "run", Step: "vm_group.MigrateGroup", Label: "migration", StepID: 3},
	}
	for name, c := range map[string]struct {
		change func(t *interval.Traffic)
		text   string
	}{
		"a stall of half a second": {func(d *interval.Traffic) { d.Service.Record(500e6); d.Operations++ }, "max < 300"},
		"errors":                   {func(d *interval.Traffic) { d.Errors = map[string]uint64{"EIO": 900} }, "p95 < 300"},
	} {
		for _, at := range []int64{5, 10, 15} {
			intervals := seconds("OLTP", "g-0001", func(iv *interval.Interval) {
				if iv.Sequence == at {
					c.change(&iv.Directions[interval.Read])
				}
			})
			got := map[string]string{}
			for _, window := range []string{"before migration", "after migration"} {
				x := scenario.Threshold{Text: c.text, Window: window}
				if _, err := fmt.Sscan(c.text, &x.Statistic, &x.Operator, &x.Value); err != nil {
					t.Fatal(err)
				}
				x.Value *= 1e6
				r := scenario.Result{Name: "latency", Type: "latency", Source: scenario.FromWorkload, Workload: "OLTP", Aggregate: "mean", Expect: []scenario.Threshold{x}}
				all := append([]interval.Event{
					{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"},
					{AtNanos: 20e9, Kind: interval.EventPhaseEnded, Phase: "run"},
				}, events...)
				check := evaluated(t, record(t, all, intervals, nil), r).Results[0].Checks[0]
				got[window] = fmt.Sprint(check.Passed)
				if !check.Passed && check.Reason == "" {
					got[window] = "missed"
				}
			}
			passed := map[bool]string{true: "true", false: "false"}
			stall := name == "a stall of half a second"
			want := map[string]string{"before migration": passed[at > 10], "after migration": passed[at < 10]}
			if stall && at != 10 {
				want = map[string]string{"before migration": map[bool]string{true: "missed", false: "true"}[at < 10],
					"after migration": map[bool]string{true: "missed", false: "true"}[at > 10]}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s in second %d: %v, want %v", name, at, got, want)
			}
		}
	}
}
