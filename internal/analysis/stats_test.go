package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	ourstat "github.com/braggdev/bragg/internal/stat"
)

func TestPointStatsByHand(t *testing.T) {
	points := result.Points{{Seconds: 0.5, Value: 100}, {Seconds: 1.5, Value: missing}, {Seconds: 2.5, Value: 2}, {Seconds: 3.5, Value: 4}, {Seconds: 4.5, Value: 6}, {Seconds: 5.5, Value: missing}}
	s := analysis.PointStats(points, 1e9, 6e9)
	if s.Count != 3 || s.Mean != 4 || s.Median != 4 || s.Min != 2 || s.Max != 6 || !math.IsNaN(float64(s.P95)) || s.CV != 0.5 || s.Gaps != 0 {
		t.Errorf("%+v", s)
	}
	if s := analysis.PointStats(points, 0, 6e9); s.Gaps != 1 || s.Count != 4 {
		t.Errorf("gaps between the first and the last point count: %+v", s)
	}
	if s := analysis.PointStats(points, 20e9, 30e9); s.Count != 0 || !math.IsNaN(float64(s.Mean)) || !math.IsNaN(float64(s.P999)) {
		t.Errorf("of nothing: %+v", s)
	}
	around := result.Points{{Seconds: 1, Value: -3}, {Seconds: 2, Value: 1}} // such as differences of means
	if s := analysis.PointStats(around, 0, 6e9); s.Mean != -1 || !math.IsNaN(float64(s.CV)) {
		t.Errorf("around zero: %+v", s)
	}
}

// TestPercentilesNeedEnoughValues: of 1, 2, 3 … n, the nearest rank of p95 is ⌈0.95·n⌉.
func TestPercentilesNeedEnoughValues(t *testing.T) {
	for _, c := range []struct {
		n              int
		p95, p99, p999 float64
	}{
		{19, missing, missing, missing}, {20, 19, missing, missing}, {99, 95, missing, missing}, {100, 95, 99, missing},
		{999, 950, 990, missing}, {1000, 950, 990, 999},
	} {
		var points result.Points
		h := &ourstat.Histogram{}
		for i := range c.n {
			points = append(points, result.Point{Seconds: float64(i), Value: float64(i + 1)})
			h.Record(uint64(i + 1))
		}
		ofPoints, ofOperations := analysis.PointStats(points, 0, int64(c.n)*1e9), analysis.OperationStats(h, 0, nil)
		if got := []float64{float64(ofPoints.P95), float64(ofPoints.P99), float64(ofPoints.P999)}; !same(got, []float64{c.p95, c.p99, c.p999}) {
			t.Errorf("of %d points: %v", c.n, got)
		}
		for i, got := range []result.Number{ofOperations.P95, ofOperations.P99, ofOperations.P999} {
			want := []float64{c.p95, c.p99, c.p999}[i]
			if math.IsNaN(float64(got)) != math.IsNaN(want) || math.Abs(float64(got)-want) > 0.004*want {
				t.Errorf("of %d operations: %v, want %v", c.n, got, want)
			}
		}
		if ofPoints.Max != result.Number(c.n) || ofOperations.Max != result.Number(c.n) || math.IsNaN(float64(ofPoints.Median)) {
			t.Errorf("maximum and median need no number: %+v, %+v", ofPoints, ofOperations)
		}
	}
}

func TestPointStatsAgainstGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 2, 50).Draw(t, "values")
		var points result.Points
		for i, v := range values {
			points = append(points, result.Point{Seconds: float64(i), Value: v})
		}
		s := analysis.PointStats(points, 0, int64(len(values))*1e9)
		mean, deviation := stat.MeanStdDev(values, nil)
		if math.Abs(float64(s.Mean)-mean) > 1e-9*mean || math.Abs(float64(s.CV)-deviation/mean) > 1e-9 {
			t.Fatalf("got %+v, want mean %v and deviation %v", s, mean, deviation)
		}
	})
}

// TestLatencyWindowsAddUp: the windows together contain all recorded operations, in whichever order they are delivered.
func TestLatencyWindowsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := []result.Window{{FromNanos: 0, ToNanos: 10e9}, {FromNanos: 10e9, ToNanos: 11e9}, {FromNanos: 11e9, ToNanos: 20e9}}
		l := analysis.Latency{Windows: windows, ToNanos: 20e9, BinNanos: 2e9}
		perVM := analysis.Latency{Windows: windows, PerVM: true}
		var list []*interval.Interval
		want := [3]uint64{}
		for s := range 20 {
			n := rapid.Uint64Range(0, 50).Draw(t, "operations")
			iv := done([]string{"a", "b"}[s%2], float64(s), 1, n, 1000)
			if rapid.Bool().Draw(t, "open") {
				iv.Directions[interval.Read].Response = iv.Directions[interval.Read].Service.Clone()
			}
			list = append(list, iv)
			switch {
			case s < 10:
				want[0] += n
			case s < 11:
				want[1] += n
			default:
				want[2] += n
			}
		}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, iv := range list {
			l.Add(iv)
			perVM.Add(iv)
		}
		for w := range windows {
			both := perVM.Of("a")[w].Service().Count() + perVM.Of("b")[w].Service().Count()
			if got := l.Of("")[w].Service().Count(); got != want[w] || both != want[w] {
				t.Fatalf("window %d: %d and %d operations, want %d", w, got, both, want[w])
			}
			if r := l.Of("")[w].Response(); r != nil && r.Count() != want[w] {
				t.Fatalf("window %d: response times of %d operations, want %d", w, r.Count(), want[w])
			}
		}
		service, response := l.P99Line()
		if len(service) != 10 || response != nil && len(response) != 10 {
			t.Fatalf("%d bins and %d", len(service), len(response))
		}
	})
}

func TestLoadsByHand(t *testing.T) {
	var l analysis.Loads
	a := done("a", 0, 1, 10, 1000)
	a.Due, a.NotIssued, a.CPUNanos = 12, 2, 5
	b := done("b", 0.5, 1, 20, 2000)
	b.Directions[interval.Write] = interval.Traffic{Operations: 1, Bytes: 512, Errors: map[string]uint64{"EIO": 4}}
	idle := done("b", 1.5, 1, 0, 1)
	prefill := done("a", 0, 2, 5, 1000)
	prefill.Prefill = true
	for _, iv := range []*interval.Interval{a, b, idle, prefill} {
		l.Add(iv)
	}
	tl := analysis.NewTimeline([]interval.Event{
		{AtNanos: 0, Kind: interval.EventWorkloadStart, Workload: "w", Group: "g", Instance: 1},
		{AtNanos: 3e9, Kind: interval.EventWorkloadEnd, Workload: "w", Group: "g", Instance: 1},
	}, 0)
	list := l.Summaries(tl, map[string]interval.Engine{"w": {Name: "native"}}, analysis.SizeBound{{Workload: "w", Instance: 1}: true})
	if len(list) != 2 {
		t.Fatalf("%d loads", len(list))
	}
	s := list[0]
	if s.Prefill {
		s = list[1]
	}
	if s.VMs != 2 || s.FromNanos != 0 || s.ToNanos != 25e8 || s.CompletionNanos != 15e8 || interval.EngineText(s.Engines) != "native" || s.Due != 12 ||
		s.NotIssued != 2 || s.CPUNanos != 5 {
		t.Errorf("%+v", s)
	}
	if s.Total.Operations != 31 || s.Total.Bytes != 30*4096+512 || s.Total.Errors["EIO"] != 4 || s.Total.Service.Count() != 30 || s.Total.Response != nil {
		t.Errorf("total %+v", s.Total)
	}
	// The record must not change when roll-ups are made of it.
	if a.Directions[interval.Read].Service.Count() != 10 {
		t.Error("an interval was changed")
	}
	failed := analysis.NewTimeline([]interval.Event{
		{Kind: interval.EventWorkloadStart, Workload: "w", Instance: 1},
		{AtNanos: 3e9, Kind: interval.EventWorkloadEnd, Workload: "w", Instance: 1, Error: "agent lost"},
	}, 0)
	for _, s := range l.Summaries(failed, nil, analysis.SizeBound{{Workload: "w", Instance: 1}: true}) {
		if !s.Prefill && (s.CompletionNanos != 0 || s.Error != "agent lost") {
			t.Errorf("a load that failed did not complete: %+v", s)
		}
	}
	stopped := analysis.NewTimeline([]interval.Event{
		{Kind: interval.EventWorkloadStart, Workload: "w", Instance: 1},
		{AtNanos: 3e9, Kind: interval.EventWorkloadEnd, Workload: "w", Instance: 1, Stopped: true},
	}, 0)
	for _, s := range l.Summaries(stopped, nil, analysis.SizeBound{{Workload: "w", Instance: 1}: true}) {
		if !s.Prefill && s.CompletionNanos != 0 {
			t.Errorf("a load that was stopped did not complete: %+v", s)
		}
	}
	for _, s := range l.Summaries(tl, nil, analysis.SizeBound{{Workload: "w", Instance: 2}: true}) {
		if !s.Prefill && s.CompletionNanos != 0 {
			t.Errorf("another start of the workload is bound by size, this one by time: %+v", s)
		}
	}
}

// A start or prefill that failed, lost a VM to the run itself, or has no end did not complete, however much of it was done.
func TestLoadsLeftUndone(t *testing.T) {
	for _, prefill := range []bool{false, true} {
		started := interval.Event{Kind: interval.EventWorkloadStart, Workload: "w", Instance: 1, Prefill: prefill}
		ended := interval.Event{AtNanos: 2e9, Kind: interval.EventWorkloadEnd, Workload: "w", Instance: 1, Prefill: prefill}
		failed := ended
		failed.Error = "no space"
		cut := interval.Event{AtNanos: 1e9, Kind: interval.EventAnnotation, Workload: "w", Instance: 1, Prefill: prefill, Subject: "b", CutByRun: true}
		other := cut
		other.Prefill = !prefill
		for name, c := range map[string]struct {
			events   []interval.Event
			complete bool
		}{
			"done":            {[]interval.Event{started, ended}, true},
			"cut":             {[]interval.Event{started, cut, ended}, false},
			"another was cut": {[]interval.Event{started, other, ended}, true},
			"failed":          {[]interval.Event{started, failed}, false},
			"no end":          {[]interval.Event{started}, false},
		} {
			var l analysis.Loads
			iv := done("a", 0, 1, 5, 1000)
			iv.Prefill = prefill
			l.Add(iv)
			bound := analysis.SizeBound{{Workload: "w", Instance: 1}: true}
			list := l.Summaries(analysis.NewTimeline(c.events, 0), nil, bound)
			if len(list) != 1 || (list[0].CompletionNanos > 0) != c.complete {
				t.Errorf("%s, prefill %t: %+v", name, prefill, list)
			}
		}
	}
}

// TestLoadsDoNotDependOnOrder also mixes open and closed loops.
func TestLoadsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []*interval.Interval
		for s := range rapid.IntRange(1, 12).Draw(t, "intervals") {
			iv := done("a", float64(s), 1, rapid.Uint64Range(0, 9).Draw(t, "n"), 1000)
			if rapid.Bool().Draw(t, "open") {
				iv.Directions[interval.Read].Response = &ourstat.Histogram{}
				iv.Directions[interval.Read].Response.RecordN(5000, iv.Directions[interval.Read].Operations)
			}
			list = append(list, iv)
		}
		sum := func() result.LoadSummary {
			var l analysis.Loads
			for _, iv := range list {
				l.Add(iv)
			}
			return l.Summaries(analysis.NewTimeline(nil, 0), nil, nil)[0]
		}
		x := sum()
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		y := sum()
		if (x.Total.Response == nil) != (y.Total.Response == nil) || x.Total.Service.Count() != y.Total.Service.Count() {
			t.Fatalf("%+v differs from %+v", x.Total, y.Total)
		}
		if r := x.Total.Response; r != nil && (r.Count() != x.Total.Service.Count() || r.Sum() != y.Total.Response.Sum()) {
			t.Fatalf("response times of %d operations, service times of %d", r.Count(), x.Total.Service.Count())
		}
	})
}

// TestP99LineCountsFailures: operations that failed are longer than all others on the line too, not left out of it.
func TestP99LineCountsFailures(t *testing.T) {
	l := analysis.Latency{Windows: []result.Window{{ToNanos: 2e9}}, ToNanos: 2e9, BinNanos: 1e9}
	for second, failed := range []uint64{0, 20} {
		iv := done("a", float64(second), 1, 0, 1)
		h := &ourstat.Histogram{}
		for n := range uint64(1000) {
			h.Record((n + 1) * 1000)
		}
		iv.Directions[interval.Read] = interval.Traffic{Operations: 1000, Service: h}
		if failed > 0 {
			iv.Directions[interval.Read].Errors = map[string]uint64{"EIO": failed}
		}
		l.Add(iv)
	}
	line, _ := l.P99Line()
	if len(line) != 2 || math.Abs(line[0].Value-990e3) > 5e3 || line[1].Value != 1e6 {
		t.Errorf("%v, want 990 µs, then the longest known: 1 ms", line)
	}
}
