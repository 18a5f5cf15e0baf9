package measuring

import (
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// TestEffortOfALateCollector: a collector that was kept from the CPU with its workers closes several intervals at once. Their effort,
// which it reads once, is shared by all of them, and is in none after them. A wait that began before its interval is not carried on.
func TestEffortOfALateCollector(t *testing.T) {
	const start, second = int64(10e9), int64(1e9)
	s := &scripted{Tally: NewTally(func() *Recorder { return NewRecorder([3]bool{}, [3]bool{}, 0) }, &Splits{})}
	s.PeriodEnd = start + second
	clock := NewClock(0)
	c := NewCollector(load.Workload{IntervalLength: 1e9}, nil, &clock, &Splits{}, Span{Start: start})
	var got []interval.Effort
	c.take([]Source{s}, load.SinkFunc(func(iv interval.Interval) { got = append(got, iv.Effort) }))
	s.lap = [2]int64{600e6, 2300e6}
	c.tick(start + 3*second) // two intervals late
	s.lap = [2]int64{100e6, 1500e6}
	c.tick(start + 4*second)
	c.tick(start + 5*second)
	want := [][2]int64{{200e6, 766_666_666}, {200e6, 766_666_667}, {200e6, 766_666_667}, {100e6, 1000e6}, {0, 0}}
	if len(got) != len(want) {
		t.Fatalf("%d intervals: %+v", len(got), got)
	}
	for i := range want {
		if got[i].BusiestNanos != want[i][0] || got[i].WaitedNanos != want[i][1] {
			t.Errorf("interval %d: %+v, want %v", i, got[i], want[i])
		}
	}
}
