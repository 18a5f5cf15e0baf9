package analysis_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

var missing = math.NaN()

// done makes an interval of reads, each of 4 KiB, from second from for length seconds.
func done(vm string, from, length float64, operations uint64, latency time.Duration) *interval.Interval {
	iv := &interval.Interval{Workload: "w", Group: "g", VM: vm, Instance: 1,
		StartNanos: int64(math.Round(from * 1e9)), LengthNanos: int64(math.Round(length * 1e9))}
	h := &stat.Histogram{}
	h.RecordN(uint64(latency), operations)
	iv.Directions[interval.Read] = interval.Traffic{Operations: operations, Bytes: 4096 * operations, Service: h}
	return iv
}

func everything(*analysis.Track) bool { return true }

// lines returns the values of a grid's only VM.
func values(g *analysis.Grid, q analysis.Quantity) []float64 {
	g.Close()
	return g.VMLine("", g.Tracks(everything), q, analysis.Span{To: g.Cells}).Values
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-5*math.Abs(y)
	})
}

func TestGridByHand(t *testing.T) {
	grid := func(list ...*interval.Interval) *analysis.Grid {
		g := analysis.NewGrid(0, 5e9)
		for _, iv := range list {
			g.Add(iv)
		}
		return g
	}
	for name, c := range map[string]struct {
		grid *analysis.Grid
		q    analysis.Quantity
		want []float64
	}{
		"aligned":             {grid(done("a", 0, 1, 10, 1), done("a", 1, 1, 20, 1)), analysis.IOPS, []float64{10, 20, missing, missing, missing}},
		"a zero is not a gap": {grid(done("a", 0, 1, 0, 1), done("a", 2, 1, 5, 1)), analysis.IOPS, []float64{0, missing, 5, missing, missing}},
		// Second 1 has 0.3 s of the first interval and 0.7 s of the second.
		"shifted":           {grid(done("a", 0.3, 1, 10, 1), done("a", 1.3, 1, 20, 1), done("a", 2.3, 1.3, 39, 1)), analysis.IOPS, []float64{10, 17, 27, 30, missing}},
		"a short first":     {grid(done("a", 0.7, 0.3, 1, 1), done("a", 1, 1, 25, 1)), analysis.IOPS, []float64{missing, 20, missing, missing, missing}},
		"a long first":      {grid(done("a", 0.4, 0.6, 6, 1), done("a", 1, 1, 25, 1)), analysis.IOPS, []float64{10, 25, missing, missing, missing}},
		"outside the grid":  {grid(done("a", -1, 1, 10, 1), done("a", 5, 1, 10, 1)), analysis.IOPS, []float64{missing, missing, missing, missing, missing}},
		"delivered late":    {grid(done("a", 3, 1, 30, 1), done("a", 1, 1, 10, 1)), analysis.IOPS, []float64{missing, 10, missing, 30, missing}},
		"bytes":             {grid(done("a", 0, 1, 10, 1)), analysis.Bandwidth, []float64{40960, missing, missing, missing, missing}},
		"active":            {grid(done("a", 0, 1, 10, 1), done("a", 1, 1, 0, 1)), analysis.Active, []float64{1, 0, missing, missing, missing}},
		"latency":           {grid(done("a", 0, 1, 10, 2000), done("a", 1, 1, 0, 1)), analysis.Service, []float64{2000, missing, missing, missing, missing}},
		"tenths of seconds": {tenths(), analysis.IOPS, []float64{55, 150, missing, missing, missing}},
	} {
		if got := values(c.grid, c.q); !same(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// tenths delivers intervals of a tenth of a second with 1, 2, 3 … 20 operations; the last one is the drain.
func tenths() *analysis.Grid {
	g := analysis.NewGrid(0, 5e9)
	for i := range 20 {
		iv := done("a", float64(i)/10, 0.1, uint64(i+1), 1)
		iv.Final = i == 19
		g.Add(iv)
	}
	return g
}

// TestEdgesOfFourVMs: four VMs at a constant 100 operations a second start and end at different fractions of a second, and
// in-flight operations drain after the runtime at another rate. Each line is flat, and so is the sum.
func TestEdgesOfFourVMs(t *testing.T) {
	for name, bound := range map[string]bool{"for a time": false, "until the data is through": true} {
		g := analysis.NewGrid(7_140_000_000, 12_000_000_000)
		g.SizeBound = analysis.SizeBound{{Workload: "w", Instance: 1}: bound}
		for i, from := range []float64{7.15, 7.30, 7.45, 7.60} {
			vm := string(rune('a' + i))
			rate := func(from, length float64, perSecond float64) *interval.Interval {
				iv := done(vm, from, length, 1000, 1)
				iv.Directions[interval.Read].Operations = uint64(math.Round(length * perSecond * 1000))
				return iv
			}
			g.Add(rate(from, 8-from, 100))
			for s := 8; s < 11; s++ {
				g.Add(rate(float64(s), 1, 100))
			}
			perSecond := 17.0
			if bound {
				perSecond = 100
			}
			final := rate(11, []float64{0.384, 0.424, 0.481, 0.7}[i], perSecond)
			final.Final = true
			g.Add(final)
		}
		g.Close()
		var lines []analysis.Line
		span := g.Span(7_140_000_000, 12_000_000_000)
		for _, vm := range []string{"a", "b", "c", "d"} {
			tracks := g.Tracks(func(t *analysis.Track) bool { return t.VM == vm })
			l := g.VMLine(vm, tracks, analysis.IOPS, span)
			for i, v := range l.Values {
				if !math.IsNaN(v) && math.Abs(v-100_000) > 0.1 {
					t.Errorf("%s: %s at %d s: %v", name, vm, i+7, v)
				}
			}
			lines = append(lines, l)
		}
		// VM d begins in the second half of second 7, so three VMs run there. After the middle of second 11, VM d is the
		// only one that is not draining.
		want := []float64{300_000, 400_000, 400_000, 400_000, missing}
		if bound {
			want[4] = 100_000
		}
		if got := analysis.Combine(lines, "sum").Values; !same(got, want) {
			t.Errorf("%s: sum %v, want %v", name, got, want)
		}
	}
}

// TestSumAtTheEndOfALoad: three VMs at 100, 200 and 400 operations a second run for a set time that is up in second 3. VM
// a ends at 0.95 of it, which is drawn; b at 0.89 and c at 0.4, which are drains. The sum of what has a rate there would
// be 100 after 700. A VM that lost its power earlier delivered no last interval, and the sum goes on without it.
func TestSumAtTheEndOfALoad(t *testing.T) {
	g := analysis.NewGrid(0, 4e9)
	for vm, v := range map[string]struct {
		perSecond uint64
		end       float64
	}{"a": {100, 0.95}, "b": {200, 0.89}, "c": {400, 0.4}} {
		for s := range 3 {
			g.Add(done(vm, float64(s), 1, v.perSecond, 1))
		}
		last := done(vm, 3, v.end, uint64(math.Round(float64(v.perSecond)*v.end)), 1)
		last.Final = true
		g.Add(last)
	}
	g.Add(done("dead", 0, 1, 50, 1))
	g.Add(done("dead", 1, 0.3, 15, 1))
	g.Close()
	var lines, errors []analysis.Line
	for _, vm := range []string{"a", "b", "c", "dead"} {
		tracks := g.Tracks(func(t *analysis.Track) bool { return t.VM == vm })
		lines = append(lines, g.VMLine(vm, tracks, analysis.IOPS, analysis.Span{To: 4}))
		errors = append(errors, g.VMLine(vm, tracks, analysis.ErrorsSum, analysis.Span{To: 4}))
	}
	if got := lines[0].Values; !same(got, []float64{100, 100, 100, 100}) {
		t.Errorf("a VM alone keeps its rate of 95 operations in 0.95 s: %v", got)
	}
	for how, want := range map[string][]float64{
		"sum": {750, 700, 700, missing}, "max": {400, 400, 400, 100}, "mean": {187.5, 700.0 / 3, 700.0 / 3, 100},
	} {
		if got := analysis.Combine(lines, how).Values; !same(got, want) {
			t.Errorf("%s: %v, want %v", how, got, want)
		}
	}
	if got := analysis.Combine(errors, "sum").Values; !same(got, []float64{0, 0, 0, 0}) {
		t.Errorf("errors do not end: %v", got)
	}
}

func TestDrainOfALoadThatIsNothingElse(t *testing.T) {
	g := analysis.NewGrid(0, 3e9)
	iv := done("a", 0, 0.8, 8, 1)
	iv.Final = true
	g.Add(iv)
	if got := values(g, analysis.IOPS); !same(got, []float64{10, missing, missing}) {
		t.Errorf("got %v", got)
	}
}

func TestErrorsAreCumulativeAndNeverFall(t *testing.T) {
	g := analysis.NewGrid(0, 6e9)
	fail := func(from float64, n uint64) *interval.Interval {
		iv := done("a", from, 1, 1, 1)
		if n > 0 {
			iv.Directions[interval.Write].Errors = map[string]uint64{"EIO": n}
		}
		return iv
	}
	g.Add(fail(1, 0))
	g.Add(fail(2, 3))
	g.Add(fail(3, 0))
	g.Add(fail(4, 2)) // then the VM dies
	if got, want := values(g, analysis.ErrorsSum), []float64{missing, 0, 3, 3, 5, missing}; !same(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// The failures on it since then are unknown; a sum over VMs of which others are alive keeps the last known value, and
	// does not fall.
	alive := analysis.NewGrid(0, 6e9)
	for second := range 6 {
		alive.Add(done("b", float64(second), 1, 1, 1))
	}
	alive.Close()
	both := []analysis.Line{
		g.VMLine("a", g.Tracks(everything), analysis.ErrorsSum, analysis.Span{To: 6}),
		alive.VMLine("b", alive.Tracks(everything), analysis.ErrorsSum, analysis.Span{To: 6}),
	}
	if got := analysis.Combine(both, "sum").Values; !same(got, []float64{0, 0, 3, 3, 5, 5}) {
		t.Errorf("errors of both: %v", got)
	}
	if got := analysis.Combine(both[:1], "sum").Values; !same(got, []float64{missing, 0, 3, 3, 5, missing}) {
		t.Errorf("errors of the dead one alone: %v", got)
	}
	// It comes back: what happened meanwhile is a gap, not more of the same.
	back := analysis.NewGrid(0, 6e9)
	for _, second := range []float64{0, 1, 3.9, 4.9} { // covers a tenth of the fourth second
		back.Add(done("a", second, 1, 1, 1))
	}
	back.Close()
	if got, want := values(back, analysis.ErrorsSum), []float64{0, 0, missing, missing, 0, 0}; !same(got, want) {
		t.Errorf("of one that came back: got %v, want %v", got, want)
	}
	// A workload that has ended keeps its errors in the sum of its VM.
	next := done("a", 5, 1, 1, 1)
	next.Workload = "next"
	g.Add(next)
	g.Close()
	if got, want := values(g, analysis.ErrorsSum), []float64{missing, 0, 3, 3, 5, 5}; !same(got, want) {
		t.Errorf("of two workloads: got %v, want %v", got, want)
	}
	// A result that begins later counts from its own beginning.
	if got := g.VMLine("", g.Tracks(everything), analysis.ErrorsSum, analysis.Span{From: 3, To: 6}).Values; !same(got, []float64{0, 2, 2}) {
		t.Errorf("from second 3: %v", got)
	}
}

// TestIntervalsAreSharedByTime: whole intervals that begin at any fraction of a second.
func TestIntervalsAreSharedByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Uint64Range(0, 100_000), 1, 40).Draw(t, "operations")
		offset := float64(rapid.IntRange(0, 999).Draw(t, "offset in ms")) / 1000
		g := analysis.NewGrid(0, int64(len(counts)+1)*1e9)
		for s, n := range counts {
			g.Add(done("a", offset+float64(s), 1, n, 1))
		}
		at := func(i int) float64 {
			if i < 0 || i >= len(counts) {
				return 0
			}
			return float64(counts[i])
		}
		for cell, got := range values(g, analysis.IOPS) {
			covered := 1.0
			if cell == 0 {
				covered -= offset
			}
			if cell == len(counts) {
				covered -= 1 - offset
			}
			want := (offset*at(cell-1) + (1-offset)*at(cell)) / covered
			if covered < 0.5 {
				want = missing
			}
			if math.Abs(covered-0.5) < 1e-6 {
				continue // either way
			}
			if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-5*want+1e-9 {
				t.Fatalf("second %d: %v operations/s, want %v", cell, got, want)
			}
		}
	})
}

func TestCombineByHand(t *testing.T) {
	lines := []analysis.Line{
		{Values: []float64{1, missing, 3, missing}}, {Values: []float64{2, 5, 1, missing}}, {Values: []float64{6, 7, missing, missing}},
	}
	for how, want := range map[string][]float64{
		"sum": {9, 12, 4, missing}, "min": {1, 5, 1, missing}, "max": {6, 7, 3, missing}, "mean": {3, 6, 2, missing},
		"median": {2, 6, 2, missing},
	} {
		if got := analysis.Combine(lines, how).Values; !same(got, want) {
			t.Errorf("%s: got %v, want %v", how, got, want)
		}
	}
	if got := analysis.Combine(nil, "sum").Values; got != nil {
		t.Errorf("of nothing: %v", got)
	}
	// 10 operations of 100 ns on one VM and 30 of 300 ns on the other are 40 of 250 ns; the median VM is at 200 ns.
	latency := []analysis.Line{{Values: []float64{100}, Weights: []float64{10}}, {Values: []float64{300}, Weights: []float64{30}}}
	for how, want := range map[string]float64{"mean": 250, "sum": 250, "median": 200, "max": 300, "min": 100} {
		if got := analysis.Combine(latency, how).Values[0]; got != want {
			t.Errorf("%s of latencies: %v, want %v", how, got, want)
		}
	}
}

func TestResampleByHand(t *testing.T) {
	g := analysis.NewGrid(10e9, 20e9)
	l := analysis.Line{Values: []float64{1, 3, missing, missing, missing, 7, 5}}
	for _, c := range []struct {
		q    analysis.Quantity
		want []float64
	}{
		{analysis.IOPS, []float64{2, missing, 5}}, {analysis.ErrorsSum, []float64{3, missing, 5}},
	} {
		points := g.Points(l, 3*time.Second, c.q)
		var got []float64
		for _, p := range points {
			got = append(got, p.Value)
		}
		if !same(got, c.want) || points[0].Seconds != 11.5 || points[2].Seconds != 16.5 {
			t.Errorf("%s: %v", c.q, points)
		}
	}
	latency := analysis.Line{Values: []float64{100, 300}, Weights: []float64{10, 30}}
	if got := g.Points(latency, 2*time.Second, analysis.Service); got[0].Value != 250 {
		t.Errorf("latency over two seconds: %v", got)
	}
}

func TestReduceKeepsPeaksAndGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 50).Draw(t, "limit")
		n := rapid.IntRange(0, 400).Draw(t, "points")
		points := make(result.Points, n)
		low, high := math.Inf(1), math.Inf(-1)
		for i := range points {
			points[i] = result.Point{Seconds: float64(i), Value: float64(rapid.IntRange(-5, 100).Draw(t, "v"))}
			if points[i].Value < 0 {
				points[i].Value = missing
				continue
			}
			low, high = min(low, points[i].Value), max(high, points[i].Value)
		}
		out := analysis.Reduce(points, limit)
		if len(out) > max(limit, 2) && len(out) != n {
			t.Fatalf("%d points of %d, limit %d", len(out), n, limit)
		}
		outLow, outHigh := math.Inf(1), math.Inf(-1)
		for i, p := range out {
			if i > 0 && p.Seconds <= out[i-1].Seconds {
				t.Fatalf("time goes back at %d: %v", i, out)
			}
			if !math.IsNaN(p.Value) {
				outLow, outHigh = min(outLow, p.Value), max(outHigh, p.Value)
			}
		}
		if outLow != low || outHigh != high {
			t.Fatalf("from %v to %v became from %v to %v", low, high, outLow, outHigh)
		}
	})
	gap := make(result.Points, 1000)
	for i := range gap {
		gap[i] = result.Point{Seconds: float64(i), Value: 1}
		if i >= 400 && i < 600 {
			gap[i].Value = missing
		}
	}
	out := analysis.Reduce(gap, 100)
	for _, p := range out {
		if inGap := p.Seconds > 400 && p.Seconds < 600; inGap != math.IsNaN(p.Value) {
			t.Errorf("at %v s: %v", p.Seconds, p.Value)
		}
	}
}
