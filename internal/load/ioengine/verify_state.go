package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// How far a job came with its writes, for whoever verifies them later.

// Written returns how many writes a workload of one clone made that verifies them, and where the last of them went that are
// known to be complete. It returns false where there is none such, where there are operations besides writes, because the
// number of writes then does not say which they were, and where a write failed before the last ones, of which nothing is
// said. It is valid once Run has returned.
func (r Run) Written() (limit fiojob.VerifyLimit, order Order, ok bool) {
	var of *lane
	for _, workers := range r.phases {
		for _, w := range workers {
			for i := range w.lanes {
				if of != nil {
					return limit, order, false
				}
				of = &w.lanes[i]
			}
		}
	}
	if of == nil || of.verify == nil || of.verify.spec.Only || of.verify.trims != nil || !of.job.Writes || of.Active[interval.Read] {
		return limit, order, false
	}
	v := of.verify
	limit.Writes, limit.Depth = v.count, uint64(len(v.recent))
	failed := v.failed
	for back := uint64(1); back <= min(v.count, limit.Depth); back++ {
		if w := &v.recent[(v.count-back)%limit.Depth]; w.dead {
			failed--
		} else {
			limit.Completed = append(limit.Completed, fiojob.VerifyPlace{File: int64(w.stream), Offset: w.offset})
		}
	}
	if failed > 0 {
		return limit, order, false
	}
	order.Files = len(of.Streams)
	order.OfSeed = of.job.Random || len(of.Streams) > 1 || !of.job.Sizes[interval.Write].Fixed()
	return limit, order, true
}

// Order says whether others make the same operations.
type Order struct {
	Files  int
	OfSeed bool // they follow from the seed, and not from the job alone
}
