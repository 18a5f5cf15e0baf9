package program

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

// Axis is the run's time axis: monotonic nanoseconds since its zero.
type Axis struct {
	base      time.Time // with a monotonic reading
	baseNanos int64     // of base on the axis
}

// NewAxis starts an axis whose zero is the given wall time; 0 means now.
func NewAxis(zeroUnixNanos int64) Axis {
	now := time.Now()
	a := Axis{base: now}
	if zeroUnixNanos != 0 {
		a.baseNanos = now.UnixNano() - zeroUnixNanos
	}
	return a
}

// Now is the current time on the axis.
func (a Axis) Now() int64 { return a.Of(time.Now()) }

// Of is a time with a monotonic reading on the axis.
func (a Axis) Of(t time.Time) int64 { return a.baseNanos + int64(t.Sub(a.base)) }

// WaitUntil waits for a time on the axis, such as the common start of a load; 0 is no time. It ends early with the context.
func (a Axis) WaitUntil(ctx context.Context, nanos int64) {
	if nanos > 0 {
		_ = wait.For(ctx, time.Duration(nanos-a.Now()))
	}
}
