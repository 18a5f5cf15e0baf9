package analysis_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
)

const ms = int64(1e6)

// quietVM makes the intervals of one VM from times of completions in [from, to).
func quietVM(vm string, from, to int64, completions []int64) []interval.Interval {
	var list []interval.Interval
	for at := from; at < to; {
		end := min((at/1e9+1)*1e9, to)
		iv := interval.Interval{Workload: "Load", Group: "g", VM: vm, Instance: 1, StartNanos: at, LengthNanos: end - at, Final: end == to}
		last := at
		for _, c := range completions {
			if c < at || c >= end {
				continue
			}
			if last == at && len(iv.Gaps) == 0 || c-last >= int64(interval.GapMin) {
				iv.Gaps = append(iv.Gaps, interval.Gap{FromNanos: last - at, ToNanos: c - at})
			}
			last = c
		}
		iv.Gaps = append(iv.Gaps, interval.Gap{FromNanos: last - at, ToNanos: end - at})
		list = append(list, iv)
		at = end
	}
	return list
}

func every(from, to, step int64) (list []int64) {
	for at := from; at < to; at += step {
		list = append(list, at)
	}
	return list
}

func keepAll(string, string, bool) bool { return true }

// TestStallsOfOneVM: a stall has its true length across seconds and windows, and the one that is open at the end counts.
func TestStallsOfOneVM(t *testing.T) {
	times := slices.Concat(every(500*ms, 3700*ms, 2*ms), every(6100*ms, 8000*ms, 2*ms), []int64{8000 * ms})
	var s analysis.Stalls
	for _, iv := range quietVM("a", 500*ms, 9500*ms, times) {
		s.Add(&iv)
	}
	silence := s.Of("a", keepAll)
	for name, c := range map[string]struct{ from, to, longest, at, zero int64 }{
		"whole":           {0, 10_000 * ms, 2402 * ms, 3698 * ms, 3},
		"begins in it":    {0, 4000 * ms, 2402 * ms, 3698 * ms, 0},
		"ends in it":      {4000 * ms, 7000 * ms, 2100 * ms, 4000 * ms, 2},
		"open at its end": {7000 * ms, 9500 * ms, 1500 * ms, 8000 * ms, 1},
		"without one":     {1000 * ms, 3000 * ms, 0, 0, 0},
	} {
		got := silence.In(c.from, c.to)
		if got.LongestNanos != c.longest || got.AtNanos != c.at || got.ZeroSeconds != int(c.zero) {
			t.Errorf("%s: %+v, want %+v", name, *got, c)
		}
	}
}

// TestStallsOfAGroup: a group stalls when no VM of it completes anything, as the completions of all VMs tell. A VM whose load does
// not run neither stalls nor ends a stall.
func TestStallsOfAGroup(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		var s analysis.Stalls
		var all []int64
		var lists [][]interval.Interval
		first, last := int64(1<<62), int64(0)
		for _, vm := range []string{"a", "b", "c"} {
			from := random.Int64N(500) * ms
			to := from + 6000*ms + random.Int64N(2000)*ms
			var own []int64
			for at := from; at < to; at += 1 + random.Int64N(20*ms) {
				if random.IntN(60) == 0 {
					at += random.Int64N(2000 * ms)
				}
				if at < to {
					own = append(own, at)
				}
			}
			all = append(all, own...)
			first, last = min(first, from), max(last, to)
			lists = append(lists, quietVM(vm, from, to, own))
		}
		for i := range 20 { // in the order in which intervals arrive
			for _, list := range lists {
				if i < len(list) {
					s.Add(&list[i])
				}
			}
		}
		slices.Sort(all)
		var longest, at int64
		before := first
		for _, c := range append(all, last) {
			if c-before > longest {
				longest, at = c-before, before
			}
			before = c
		}
		if longest < int64(interval.GapMin) {
			longest, at = 0, 0
		}
		got := s.Of("", keepAll).In(0, last)
		if max(got.LongestNanos-longest, longest-got.LongestNanos, got.AtNanos-at, at-got.AtNanos) > 2 {
			t.Errorf("seed %d: longest stall of the group %d at %d, want %d at %d", seed, got.LongestNanos, got.AtNanos, longest, at)
		}
	}
}

// TestStallsUnknown: a generator that does not see completions one by one has no stalls, not a stall of zero.
func TestStallsUnknown(t *testing.T) {
	var s analysis.Stalls
	for _, iv := range quietVM("a", 0, 3e9, every(0, 3e9, ms)) {
		s.Add(&iv)
	}
	s.Add(&interval.Interval{Workload: "Load", Group: "g", VM: "b", LengthNanos: 1e9})
	if s.Of("a", keepAll) == nil || s.Of("b", keepAll) != nil || s.Of("", keepAll) != nil {
		t.Error("stalls of b and of the group are known, or those of a are not")
	}
	if s.Of("b", keepAll).In(0, 1e9) != nil {
		t.Error("unknown silence has figures")
	}
}

// TestStallsOfASlowLoad bounds the memory: of many gaps the longest stay.
func TestStallsOfASlowLoad(t *testing.T) {
	var s analysis.Stalls
	times := slices.Concat(every(0, 600e9, 12*ms), every(601e9, 1200e9, 12*ms))
	for at := int64(0); at < 1200e9; at += 100e9 {
		for _, iv := range quietVM("a", at, at+100e9, times[sortedAt(times, at):sortedAt(times, at+100e9)]) {
			iv.Final = false
			s.Add(&iv)
		}
	}
	if got := s.Of("a", keepAll).In(0, 1200e9); got.LongestNanos < 1e9 || got.LongestNanos > 1e9+12*ms || got.ShortestNanos <= int64(interval.GapMin) {
		t.Errorf("%+v, want a second", *got)
	}
}

func sortedAt(list []int64, v int64) int { i, _ := slices.BinarySearch(list, v); return i }
