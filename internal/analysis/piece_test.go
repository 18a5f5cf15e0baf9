package analysis

import (
	"math"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// TestPieces: an interval of 2.1 s without much I/O is one piece, alone and in the sum of two VMs.
func TestPieces(t *testing.T) {
	g := NewGrid(0, 8e9)
	add := func(vm string, from, to float64, operations uint64) {
		iv := interval.Interval{Workload: "w", Group: "g", VM: vm, StartNanos: int64(from * 1e9), LengthNanos: int64((to-from)*1e9 + 0.5)}
		iv.Directions[0].Operations = operations
		g.Extent = nil
		g.Add(&iv)
	}
	for s := range 8 {
		add("b", float64(s), float64(s)+1, 100)
	}
	at := 0.3
	for _, length := range []float64{1, 1, 2.1, 1, 1, 1.3} {
		operations := uint64(1000 * length)
		if length == 2.1 {
			operations = 126
		}
		add("a", at, at+length, operations)
		at += length
	}
	g.Close()
	lines := map[string]Line{}
	for _, track := range g.Tracks(func(*Track) bool { return true }) {
		lines[track.VM] = g.VMLine(track.VM, []*Track{track}, IOPS, Span{From: 0, To: 8})
	}
	for name, c := range map[string]struct {
		line  Line
		value float64
	}{"alone": {lines["a"], 60}, "sum": {Combine([]Line{lines["a"], lines["b"]}, "sum"), 160}} {
		points, pieces := g.Pieced(g.Points(c.line, time.Second, IOPS), c.line, time.Second)
		if len(pieces) != 1 || pieces[0].FromSeconds != 2.3 || math.Abs(pieces[0].ToSeconds-4.4) > 1e-6 {
			t.Fatalf("%s: %+v", name, pieces)
		}
		within := 0
		for _, p := range points {
			if p.Seconds < 2.3 || p.Seconds > 4.4+1e-6 {
				if p.Value < 900 && p.Seconds > 1 && p.Seconds < 7 {
					t.Errorf("%s: %+v beside the piece", name, p)
				}
				continue
			}
			if within++; math.Abs(p.Value-c.value) > 1e-3 {
				t.Errorf("%s: %+v, want %v", name, p, c.value)
			}
		}
		if within != 2 {
			t.Errorf("%s: %d points in the piece: %v", name, within, points)
		}
		if _, pieces := g.Pieced(g.Points(c.line, 4*time.Second, IOPS), c.line, 4*time.Second); len(pieces) != 0 {
			t.Errorf("%s: a piece shorter than a step: %v", name, pieces)
		}
	}
}
