package session

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/unit"
)

// The guard's limits. A run is admitted only if the file system keeps a good part of its space free, so if space runs out
// the cause is another program or a wrong estimate: in both cases the load has to stop while undo can still write.
const (
	guardPeriod       = time.Second
	guardBytesMin     = 16 * unit.MiB
	guardBytesMax     = unit.GiB
	guardPercentOfAll = 2
)

// guardFloor returns how many bytes must stay free on a file system of that size.
func guardFloor(totalBytes int64) int64 {
	return min(max(totalBytes/100*guardPercentOfAll, guardBytesMin), guardBytesMax)
}

// guard watches the free space of one place.
type guard struct {
	place string
	space func(place string) (freeBytes, totalBytes int64, err error)
}

// watch reads the space every second until ctx ends or less than the floor is free; then it calls stop once with the
// reason. A place that cannot be read is not a reason to stop: the next reading may succeed.
func (g guard) watch(ctx context.Context, stop func(error)) {
	tick := time.NewTicker(guardPeriod)
	defer tick.Stop()
	for {
		if free, total, err := g.space(g.place); err == nil && free < guardFloor(total) {
			stop(lowSpace(g.place, free, guardFloor(total)))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func lowSpace(place string, free, floor int64) error {
	return &diag.Error{
		Code: "low-space",
		Message: fmt.Sprintf("only %s are free on the file system of %q, and the run needs %s to end in order",
			unit.FormatBytes(free), place, unit.FormatBytes(floor)),
		Hint: "free some space and run again",
		Exit: diag.ExitUndecided,
	}
}
