package measuring

import "time"

// Clock reads the run's time axis: nanoseconds since its zero on the monotonic clock, so that a step of the wall clock
// during the run has no effect.
type Clock struct {
	base   time.Time // with a monotonic reading
	offset int64     // of base on the axis
}

// NewClock returns the axis whose zero is at zeroUnixNanos; 0 puts the zero at this moment.
func NewClock(zeroUnixNanos int64) Clock {
	c := Clock{base: time.Now()}
	if zeroUnixNanos != 0 {
		c.offset = c.base.UnixNano() - zeroUnixNanos
	}
	return c
}

func (c *Clock) Now() int64 { return c.offset + int64(time.Since(c.base)) }

// FloorTo rounds t down to a multiple of step, below zero too.
func FloorTo(t, step int64) int64 {
	rest := t % step
	if rest < 0 {
		rest += step
	}
	return t - rest
}
