package evaluate

import (
	"testing"

	"github.com/braggdev/bragg/internal/result"
)

// A point of a slow source describes time before its window too: a window that is shorter has no statistics of it, rather than those
// of another window.
func TestSlowPointsStayOutOfShortWindows(t *testing.T) {
	const second = int64(1e9)
	windows := []result.Window{{Name: "before", FromNanos: 0, ToNanos: 60 * second}, {Name: "short", FromNanos: 60 * second, ToNanos: 65 * second},
		{Name: "after", FromNanos: 65 * second, ToNanos: 120 * second}}
	var points result.Points
	for i := range 120 {
		points = append(points, result.Point{Seconds: float64(i) + 0.5, Value: 100})
	}
	for strict, want := range map[bool]uint64{true: 0, false: 5} {
		total := uint64(120)
		if strict {
			total = 108 // the first points describe the setup
		}
		e := sheet{windows: windows, lookback: 12 * second, strict: strict}
		e.ToNanos = 120 * second
		e.addPointStats(result.Series{Name: "read", Points: points}, 2)
		for _, s := range e.Stats {
			switch {
			case s.Window == "" && s.Count != total:
				t.Errorf("strict %v: %d points in all, want %d", strict, s.Count, total)
			case s.Window == "short" && s.Count != want:
				t.Errorf("strict %v: the short window has %d points, want %d", strict, s.Count, want)
			case s.Window == "after" && (s.Count == 0 || s.Count > 55-12):
				t.Errorf("strict %v: the window after it has %d points", strict, s.Count)
			}
		}
	}
}
