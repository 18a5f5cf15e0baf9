package analysis_test

import (
	"math"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
)

// brief is a grid with one load of a tenth of a second, 10.05 to 10.15, that did 20 operations. Nothing else ran.
func brief(sizeBound bool) *analysis.Grid {
	g := analysis.NewGrid(10_024_000_000, 10_169_000_000)
	g.SizeBound = analysis.SizeBound{{Workload: "w", Instance: 1}: sizeBound}
	iv := done("a", 10.05, 0.1, 20, 1)
	iv.Final = true
	g.Add(iv)
	g.Close()
	return g
}

// A load that takes a fraction of a second, in a run phase that is hardly longer, is drawn with its true rate at its
// actual time.
func TestBriefLoad(t *testing.T) {
	for _, bound := range []bool{false, true} {
		g := brief(bound)
		span := g.Span(10_024_000_000, 10_169_000_000)
		l := analysis.Combine([]analysis.Line{g.VMLine("a", g.Tracks(everything), analysis.IOPS, span)}, "sum")
		points := g.Points(l, time.Second, analysis.IOPS)
		if len(points) != 1 || math.Abs(points[0].Value-200) > 1e-4 || points[0].Seconds < 10.05 || points[0].Seconds > 10.15 {
			t.Errorf("bound by size %v: points %v", bound, points)
		}
		if s := analysis.PointStats(points, 10_050_000_000, 10_150_000_000); s.Count != 1 {
			t.Errorf("the window of the load has %d points", s.Count)
		}
	}
}

// Several brief loads of one VM in different seconds, one of them across the turn of a second, each have their rate; a
// brief end of a long load has none.
func TestBriefLoadsAmongLongOnes(t *testing.T) {
	g := analysis.NewGrid(0, 8e9)
	for instance, load := range [][2]float64{{0.2, 0.3}, {1.9, 2.2}, {3, 5}} {
		for from := load[0]; from < load[1]; {
			to := math.Min(math.Floor(from)+1, load[1])
			iv := done("a", from, to-from, uint64(math.Round(1000*(to-from))), 1)
			iv.Instance, iv.Final = instance+1, to == load[1] && instance < 2
			g.Add(iv)
			from = to
		}
	}
	end := done("a", 5, 0.2, 3, 1)
	end.Instance, end.Final = 3, true
	g.Add(end)
	got := values(g, analysis.IOPS)
	want := []float64{1000, 1000, missing, 1000, 1000, missing, missing, missing}
	if !same(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A window within a long load that holds the middle of no second shows the second around it.
func TestShortWindowOfALongLoad(t *testing.T) {
	g := analysis.NewGrid(0, 4e9)
	for s := range 4 {
		g.Add(done("a", float64(s), 1, uint64(100*(s+1)), 1))
	}
	g.Close()
	l := g.VMLine("a", g.Tracks(everything), analysis.IOPS, g.Span(1_600_000_000, 1_900_000_000))
	points := g.Points(l, time.Second, analysis.IOPS)
	if len(points) != 1 || points[0].Value != 200 || points[0].Seconds != 1.75 {
		t.Errorf("points %v", points)
	}
	if empty := g.Span(1_600_000_000, 1_600_000_000); empty.From != empty.To {
		t.Errorf("an empty window has cells %v", empty)
	}
}
