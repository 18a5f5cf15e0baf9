package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// How far a job came with its writes, for a later verification.

// Written returns the number of writes of a verifying workload with one clone, and the offsets of the last writes that
// are known to be complete. It returns false if there are none, if the workload has operations other than writes,
// because the number of writes then does not identify them, or if an earlier write failed. It is valid once Run has
// returned.
func (r Run) Written() (limit fiojob.VerifyLimit, order Order, ok bool) {
	var of *lane
	for _, w := range r.workers() {
		for i := range w.lanes {
			if of != nil {
				return limit, order, false
			}
			of = &w.lanes[i]
		}
	}
	if of == nil || of.verify == nil || of.Job.VerifiesOnly() || of.Job.TrimsBack() || !of.Job.Writes || of.Active[interval.Read] {
		return limit, order, false
	}
	if limit, ok = of.verify.LastWrites(); !ok {
		return limit, order, false
	}
	order.Files = len(of.Streams)
	order.OfSeed = of.Job.Random || len(of.Streams) > 1 || !of.Job.Sizes[interval.Write].Fixed()
	return limit, order, true
}

// Order describes whether other generators would perform the same operations.
type Order struct {
	Files  int
	OfSeed bool // they follow from the seed, and not from the job alone
}

// DumpTo sets the folder for the files of verify_dump; by default none are written. It must be called before Run.
func (r Run) DumpTo(folder string) {
	for _, w := range r.workers() {
		w.report.Dumps = folder
	}
}
