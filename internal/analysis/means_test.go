package analysis

import (
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// TestMeans checks means of rates by hand: operations by the time in which their load ran.
func TestMeans(t *testing.T) {
	m := Means{Windows: []result.Window{{FromNanos: 0, ToNanos: 10e9}, {Name: "before", FromNanos: 0, ToNanos: 4e9}, {Name: "after", FromNanos: 4e9, ToNanos: 10e9}}}
	add := func(vm string, from, to float64, operations uint64, final bool) {
		iv := interval.Interval{Workload: "w", Group: "g", VM: vm, StartNanos: int64(math.Round(from * 1e9)), LengthNanos: int64(math.Round((to - from) * 1e9)), Final: final}
		iv.Directions[interval.Read] = interval.Traffic{Operations: operations, Bytes: 4096 * operations}
		m.Add(&iv)
	}
	// a begins within a second, and ends with 4 operations that drain for 0.1 s.
	add("a", 0.4, 1, 50, false)
	for s := 1.0; s < 9; s++ {
		add("a", s, s+1, 100, false)
	}
	add("a", 9, 9.8, 80, false)
	add("a", 9.8, 9.9, 4, true)
	// b has intervals that are not aligned, and half of the rate after 4 s: that of 3.6 to 4.6 s is in neither window.
	add("b", 0.6, 1.6, 200, false)
	add("b", 1.6, 2.6, 200, false)
	add("b", 2.6, 3.6, 200, false)
	add("b", 3.6, 4.6, 140, false)
	for s := 4.6; s < 9; s++ {
		add("b", s, s+1, 100, false)
	}
	for _, c := range []struct {
		vm        string
		window    int
		q         Quantity
		aggregate string
		want      float64
	}{
		{"a", 0, IOPS, "", (50 + 800 + 80 + 4) / 9.4},
		{"a", 1, IOPS, "", 350 / 3.6},
		{"a", 2, Bandwidth, "", 4096 * 584 / 5.8},
		{"b", 0, IOPS, "", (740 + 500) / 9.0},
		{"b", 1, IOPS, "", 200},
		{"b", 2, IOPS, "", 100},
		{"", 1, IOPS, "sum", (350 + 200*3.4) / 3.6},
		{"", 2, IOPS, "sum", (584 + 100*5.6) / 5.8},
		{"", 1, IOPS, "mean", (350 + 200*3.4) / (3.6 + 3.4)},
		{"", 1, IOPS, "max", nan}, {"", 1, Service, "sum", nan}, {"c", 1, IOPS, "", nan},
	} {
		if got := m.Of(c.vm, c.window, c.q, c.aggregate); math.Abs(got-c.want) > 1e-6*c.want || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%q %s of %s in window %d: %v, want %v", c.vm, c.aggregate, c.q, c.window, got, c.want)
		}
	}
}

// TestMeansOfSlowedLoad checks that the end of a load that an event slowed down counts as time in which it ran.
func TestMeansOfSlowedLoad(t *testing.T) {
	m := Means{Windows: []result.Window{{FromNanos: 0, ToNanos: 10e9}, {Name: "slow", FromNanos: 5e9, ToNanos: 10e9}}}
	add := func(from, length int64, operations uint64, final bool) {
		iv := interval.Interval{Workload: "w", VM: "a", StartNanos: from, LengthNanos: length, Final: final}
		iv.Directions[interval.Read].Operations = operations
		m.Add(&iv)
	}
	for s := range int64(5) {
		add(s*1e9, 1e9, 1000, false)
	}
	for s := range int64(4) {
		add((5+s)*1e9, 1e9, 100, false)
	}
	add(9e9, 0.5e9, 50, true)
	for window, want := range []float64{5450 / 9.5, 450 / 4.5} {
		if got := m.Of("a", window, IOPS, ""); math.Abs(got-want) > 1e-9 {
			t.Errorf("window %d: %v, want %v", window, got, want)
		}
	}
}

// TestMeansRepeat checks that a mean of many VMs is the same number whenever it is computed.
func TestMeansRepeat(t *testing.T) {
	mean := func() float64 {
		m := Means{Windows: []result.Window{{FromNanos: 0, ToNanos: 2e9 + 1e8}}}
		for vm := range int64(20) {
			for s := range int64(3) {
				iv := interval.Interval{Workload: "w", VM: string(rune('a' + vm)), StartNanos: s * 1e9, LengthNanos: 1e9}
				iv.Directions[interval.Read].Operations = uint64(100 + 7*vm*vm + s)
				m.Add(&iv)
			}
		}
		return m.Of("", 0, IOPS, "sum")
	}
	want := mean()
	for range 50 {
		if got := mean(); got != want {
			t.Fatalf("%v, then %v", want, got)
		}
	}
}
