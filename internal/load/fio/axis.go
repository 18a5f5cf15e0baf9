package fio

import (
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// stampLagMax is the maximum difference between a document's own timestamp and its arrival; an older timestamp is not used.
const stampLagMax = 2 * time.Second

// madeAt returns the time at which a document was made: by fio's own timestamp, which is not affected by waiting in a pipe, unless
// the wall clock was set in between.
func madeAt(a program.Axis, d arrival) int64 {
	stamp := time.UnixMilli(d.document.TimestampMillis)
	if lag := d.at.Round(0).Sub(stamp); lag >= 0 && lag < stampLagMax {
		return a.Of(d.at) - int64(lag)
	}
	return a.Of(d.at)
}
