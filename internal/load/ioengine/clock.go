package ioengine

import "time"

// clock reads the run's time axis: nanoseconds since its zero, advancing with the monotonic clock, so that a step of
// the wall clock during the run moves nothing.
type clock struct {
	base   time.Time // with a monotonic reading
	offset int64     // of base on the axis
}

// newClock returns the axis whose zero is at zeroUnixNanos; 0 puts the zero at this moment.
func newClock(zeroUnixNanos int64) clock {
	c := clock{base: time.Now()}
	if zeroUnixNanos != 0 {
		c.offset = c.base.UnixNano() - zeroUnixNanos
	}
	return c
}

func (c *clock) now() int64 { return c.offset + int64(time.Since(c.base)) }

// floorTo rounds t down to a multiple of step, below zero too.
func floorTo(t, step int64) int64 {
	rest := t % step
	if rest < 0 {
		rest += step
	}
	return t - rest
}
