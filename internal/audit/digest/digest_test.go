package digest

import (
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// TestStallsAreJoined: a stop of several seconds is one stall, and short ones in intervals beside each other are not.
func TestStallsAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		stalled []int64 // milliseconds of each second
		longest int64
		at      int64 // second
	}{
		"a stop of 4.84 s":             {[]int64{0, 420, 1000, 1000, 1000, 1000, 420, 0}, 4840, 1},
		"within one second":            {[]int64{0, 840, 0}, 840, 1},
		"from one into the next":       {[]int64{0, 300, 400, 0}, 400, 2},
		"two stops":                    {[]int64{500, 1000, 0, 1000, 1000, 0}, 2000, 3},
		"a stop, and then a short one": {[]int64{1000, 200, 200}, 1200, 0},
	} {
		d := New(nil)
		for s, ms := range c.stalled {
			d.Add(&interval.Interval{Workload: "w", VM: "v", Instance: 1, Sequence: int64(s), StartNanos: int64(s) * 1e9, LengthNanos: 1e9, StalledNanos: ms * 1e6})
		}
		if s := d.Streams()[0]; s.StallMaxNanos != c.longest*1e6 || s.StallMaxAt != c.at*1e9 {
			t.Errorf("%s: longest %d ms at %d s, want %d ms at %d s", name, s.StallMaxNanos/1e6, s.StallMaxAt/1e9, c.longest, c.at)
		}
	}
}
