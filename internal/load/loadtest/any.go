package loadtest

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Subject is a generator under test.
type Subject struct {
	Generator load.Generator
	// Endless returns a workload that runs until its runtime ends or it is canceled; runtime and start are not set yet.
	Endless func(t testing.TB) load.Workload
	// LatencyAtEnd: the program prints its latencies only when it ends, so that the last interval has those of the whole load. A load
	// that is stopped has none.
	LatencyAtEnd bool
	// ConnectsFirst: the runtime of the program includes the time in which it connects, and no interval does.
	ConnectsFirst bool
	// Untouched, if set, reports changes that a load made outside this process, if any.
	Untouched func(t testing.TB, w load.Workload)
}

// RunAny checks the contract that every generator must meet, for any configuration and any counted operations.
func RunAny(t *testing.T, s Subject) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Subject)
	}{
		{"facts", testFacts},
		{"periods", testPeriods},
		{"start", testStart},
		{"cancel", testCancel},
		{"cancel before the start", testCancelBeforeStart},
		{"close without run", testCloseWithoutRun},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

// run runs w and returns its intervals.
func (s Subject) run(t testing.TB, ctx context.Context, w load.Workload) ([]interval.Interval, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, hangGuard)
	defer cancel()
	var log Log
	err := Drive(ctx, s.Generator, w, &log)
	return log.Intervals(), err
}

// Drive runs a workload in this process.
func Drive(ctx context.Context, g load.Generator, w load.Workload, sink load.Sink) error {
	instance, err := g.Prepare(ctx, w)
	if err != nil {
		return err
	}
	err = instance.Run(ctx, sink)
	if closeErr := instance.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (s Subject) check(t testing.TB, w load.Workload, all []interval.Interval) {
	t.Helper()
	if !s.LatencyAtEnd {
		CheckIntervals(t, w, all)
		return
	}
	CheckOrder(t, w, all)
	for i := range all {
		if d := all[i].Directions; i < len(all)-1 && slices.ContainsFunc(d[:], func(t interval.Traffic) bool { return t.ResponseOrService() != nil }) {
			t.Errorf("interval %d has latencies before the end: %+v", i, d)
		}
	}
	for d, traffic := range Add(all).Directions {
		if h := traffic.ResponseOrService(); h != nil && h.Count() != traffic.Operations || traffic.Response != nil && traffic.Service != nil {
			t.Errorf("operation %d: %d operations, latencies %+v", d, traffic.Operations, traffic)
		}
	}
}

func (s Subject) untouched(t testing.TB, w load.Workload) {
	t.Helper()
	if s.Untouched != nil {
		s.Untouched(t, w)
	}
}

// A generator names its operations and gauges before it runs, the same on every machine, and delivers only these.
func testFacts(t *testing.T, s Subject) {
	w := s.Endless(t)
	w.Runtime = 300 * time.Millisecond
	plan, err := s.Generator.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	e := plan.Engine
	if e.Name == "" || len(e.Operations) > interval.OperationsMax || len(e.Gauges) > interval.GaugesMax {
		t.Errorf("the plan's engine is %+v", e)
	}
	names := slices.Clone(e.Operations)
	for _, g := range e.Gauges {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	if slices.Contains(names, "") || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names of operations and gauges: %q", names)
	}
	instance, err := s.Generator.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Loop.Known() {
		t.Errorf("the engine does not declare its loop: %q", e.Loop)
	}
	d, describes := instance.(load.Describer)
	if describes && !(d.Engine().Loop == e.Loop && slices.Equal(d.Engine().Operations, e.Operations) && slices.Equal(d.Engine().Gauges, e.Gauges)) ||
		!describes && !e.DoesIO() {
		t.Errorf("the instance does not name the operations and gauges of the plan: %+v", e)
	}
	var log Log
	if err := instance.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	all := log.Intervals()
	s.check(t, w, all)
	sum := Add(all)
	if scheduled := sum.Totals().Response != nil; scheduled != (e.Loop == interval.LoopOpen) {
		t.Errorf("response times are recorded: %t, in a loop that is %s", scheduled, e.Loop)
	}
	known := len(e.Operations)
	if e.DoesIO() {
		known = interval.DirectionCount
	}
	for i, traffic := range sum.Directions {
		if i >= known && !reflect.ValueOf(traffic).IsZero() {
			t.Errorf("operation %d has no name: %+v", i, traffic)
		}
	}
	if total := sum.Totals(); total.Operations == 0 {
		t.Error("nothing was done")
	}
	checkGauges(t, e, all)
}

// Every gauge has a value in some interval; others may be gaps.
func checkGauges(t *testing.T, e interval.Engine, all []interval.Interval) {
	t.Helper()
	seen := map[int]bool{}
	for i := range all {
		for n, v := range all[i].Gauges { // NaN is a gap
			seen[n] = seen[n] || !math.IsNaN(v)
			if math.IsInf(v, 0) {
				t.Errorf("interval %d: gauge %d is %v", i, n, v)
			}
		}
		if len(all[i].Gauges) != len(e.Gauges) || !e.DoesIO() && all[i].Devices != nil {
			t.Errorf("interval %d: gauges %v, devices %v", i, all[i].Gauges, all[i].Devices)
		}
	}
	for n, g := range e.Gauges {
		if !seen[n] {
			t.Errorf("gauge %q has no value in any interval", g.Name)
		}
	}
}

// A load that is bound by its runtime delivers an interval for every period, on the run's axis.
func testPeriods(t *testing.T, s Subject) {
	w := s.Endless(t)
	w.Runtime, w.IntervalLength = time.Second, 200*time.Millisecond
	w.ZeroUnixNanos = time.Now().Add(-time.Hour).UnixNano()
	all, err := s.run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, w, all)
	if all[0].StartNanos < int64(time.Hour) {
		t.Errorf("first interval at %v of the run's time axis, want after 1 h", time.Duration(all[0].StartNanos))
	}
	want := w.Runtime
	if s.ConnectsFirst {
		want -= w.IntervalLength
	}
	// The pieces at both ends may be joined to their neighbors.
	if sum := Add(all); sum.LengthNanos < int64(want) || len(all) < 4 {
		t.Errorf("%d intervals cover %v", len(all), time.Duration(sum.LengthNanos))
	}
}

// A workload starts at its start time on the run's time axis, not before.
func testStart(t *testing.T, s Subject) {
	w := s.Endless(t)
	w.ZeroUnixNanos = time.Now().UnixNano()
	w.StartNanos = int64(400 * time.Millisecond)
	w.Runtime = 200 * time.Millisecond
	all, err := s.run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, w, all)
	if all[0].StartNanos < w.StartNanos {
		t.Errorf("started at %d ns, asked for %d", all[0].StartNanos, w.StartNanos)
	}
}

// A canceled context stops the load in the middle; this is not an error, and leaves nothing behind.
func testCancel(t *testing.T, s Subject) {
	w := s.Endless(t)
	w.Runtime = time.Hour
	w.IntervalLength = 100 * time.Millisecond
	nothingLeft := NothingLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all []interval.Interval
	instance, err := s.Generator.Prepare(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	var log Log
	err = instance.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		log.Interval(iv)
		if iv.Sequence >= 2 {
			cancel()
		}
	}))
	cancel()
	if err != nil {
		t.Errorf("run returned %v after it was cancelled", err)
	}
	if err := instance.Close(); err != nil {
		t.Errorf("close after run: %v", err)
	}
	all = log.Intervals()
	s.check(t, w, all)
	if time.Duration(Add(all).LengthNanos) > hangGuard {
		t.Error("the load went on")
	}
	nothingLeft()
}

// A workload that is cancelled before its start delivers its last interval and does nothing.
func testCancelBeforeStart(t *testing.T, s Subject) {
	w := s.Endless(t)
	w.ZeroUnixNanos = time.Now().UnixNano()
	w.StartNanos = int64(time.Hour)
	nothingLeft := NothingLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	var log Log
	instance, err := s.Generator.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := instance.Run(ctx, &log); err != nil {
		t.Errorf("run returned %v", err)
	}
	s.check(t, w, log.Intervals())
	s.untouched(t, w)
	nothingLeft()
}

func testCloseWithoutRun(t *testing.T, s Subject) {
	nothingLeft := NothingLeft(t)
	w := s.Endless(t)
	instance, err := s.Generator.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := instance.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.untouched(t, w)
	nothingLeft()
}
