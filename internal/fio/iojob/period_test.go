package iojob

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Check intervals are whole numbers of the periods that clones deliver.
func TestPeriodsDivideCheckIntervals(t *testing.T) {
	for _, c := range []struct{ check, other, want time.Duration }{
		{time.Second, 0, 500 * time.Millisecond}, {10 * time.Second, time.Second, 500 * time.Millisecond},
		{700 * time.Millisecond, 0, 350 * time.Millisecond}, {200 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond},
	} {
		jobs := []fiojob.Job{{}, {}}
		for i, interval := range []time.Duration{c.check, c.other} {
			if interval > 0 {
				jobs[i].Control.SteadyState = fiojob.SteadyState{Measure: "iops", Duration: time.Second, CheckInterval: interval}
			}
		}
		if got := samplePeriod(jobs, 500*time.Millisecond); got != c.want {
			t.Errorf("%v and %v: periods of %v, want %v", c.check, c.other, got, c.want)
		}
	}
	if got := samplePeriod([]fiojob.Job{{}}, 300*time.Millisecond); got != 300*time.Millisecond {
		t.Errorf("without a steady state: periods of %v", got)
	}
}
