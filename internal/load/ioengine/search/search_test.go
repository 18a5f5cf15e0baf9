package search

import (
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// The search finds the deepest queue that meets the target, whatever it is.
func TestDepthSearchFindsTheDeepest(t *testing.T) {
	for depthMax := 1; depthMax <= 130; depthMax++ {
		for deepest := 1; deepest <= depthMax; deepest++ {
			d := New(&fiojob.Control{LatencyTarget: 1}, depthMax)
			windows := 0
			for ; !d.found && windows < 30; windows++ {
				d.step(d.Depth <= deepest)
			}
			if !d.found || d.Depth != deepest || !d.met {
				t.Fatalf("at most %d, target met up to %d: found %v, %d after %d windows", depthMax, deepest, d.found, d.Depth, windows)
			}
		}
	}
	never := New(&fiojob.Control{LatencyTarget: 1}, 64)
	for range 100 {
		never.step(false)
	}
	if never.found || never.Depth != 1 || never.met {
		t.Errorf("a target that nothing meets: %+v", never)
	}
	never.step(true)
	if never.Depth != 2 {
		t.Errorf("a target that is met late: depth %d", never.Depth)
	}
}

func TestDepthFollowsTheTarget(t *testing.T) {
	d := New(&fiojob.Control{LatencyTarget: 1, LatencyRun: true}, 8)
	d.found, d.Depth = true, 4
	for _, want := range []int{3, 2, 1, 1} {
		if d.follow(false); d.Depth != want || d.met {
			t.Errorf("missed: depth %d, want %d", d.Depth, want)
		}
	}
	for range calmWindows * 20 {
		d.follow(true)
	}
	if d.Depth != 8 || !d.met {
		t.Errorf("met for long: depth %d, want 8", d.Depth)
	}
}

// A window passes with exactly the asked share.
func TestWindowShare(t *testing.T) {
	for _, c := range []struct {
		percentile  float64
		count, slow int64
		passes      bool
	}{{90, 10, 1, true}, {90, 10, 2, false}, {100, 10, 0, true}, {100, 10, 1, false}, {99.9, 1000, 1, true}, {99.9, 999, 1, false}} {
		d := &Search{percentile: c.percentile, count: c.count, slow: c.slow}
		if d.passes() != c.passes {
			t.Errorf("%d of %d are slow, %g %% must not be: passes %v", c.slow, c.count, c.percentile, d.passes())
		}
	}
}
