package fio

import "time"

// axis is the run's time axis: monotonic nanoseconds since its zero.
type axis struct {
	base      time.Time // with a monotonic reading
	baseNanos int64     // of base on the axis
}

// newAxis starts an axis whose zero is the given wall time; 0 means now.
func newAxis(zeroUnixNanos int64) axis {
	now := time.Now()
	a := axis{base: now}
	if zeroUnixNanos != 0 {
		a.baseNanos = now.UnixNano() - zeroUnixNanos
	}
	return a
}

func (a axis) now() int64 { return a.of(time.Now()) }

func (a axis) of(t time.Time) int64 { return a.baseNanos + int64(t.Sub(a.base)) }

// stampLagMax is the maximum difference between a document's own timestamp and its arrival; an older timestamp is not used.
const stampLagMax = 2 * time.Second

// at returns the time at which a document was made: by fio's own timestamp, which is not affected by waiting in a pipe, unless the wall
// clock was set in between.
func (a axis) at(d arrival) int64 {
	stamp := time.UnixMilli(d.document.TimestampMillis)
	if lag := d.at.Round(0).Sub(stamp); lag >= 0 && lag < stampLagMax {
		return a.of(d.at) - int64(lag)
	}
	return a.of(d.at)
}
