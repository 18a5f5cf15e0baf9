package verb

import (
	"testing"
	"time"
)

func TestScaling(t *testing.T) {
	for _, c := range []struct {
		kind   scaling
		length time.Duration
		factor float64
		want   time.Duration
	}{
		{scaleRuntime, time.Hour, 0.01, 36 * time.Second},
		{scaleRuntime, time.Minute, 0.01, 3 * time.Second},
		{scaleRuntime, 2 * time.Second, 0.01, 2 * time.Second}, // already shorter than the floor
		{scaleWait, 10 * time.Second, 0.01, time.Second},
		{scaleWait, time.Hour, 1, time.Hour},
		{scaleGap, 900 * time.Second, 0.001, 900 * time.Millisecond},
		{scaleTimeout, 2400 * time.Second, 0.001, 5 * time.Minute},
		{scaleTimeout, 120 * time.Second, 0.001, 120 * time.Second},
		{scaleTimeout, 0, 0.001, 0},
		{scaleNone, time.Hour, 0.001, time.Hour},
	} {
		if got := c.kind.apply(c.length, c.factor); got != c.want {
			t.Errorf("%s %v × %v is %v, want %v", c.kind, c.length, c.factor, got, c.want)
		}
	}
}
