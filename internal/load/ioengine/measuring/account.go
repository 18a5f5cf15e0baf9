package measuring

import (
	"math/bits"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
	"github.com/braggdev/bragg/internal/stat"
)

// Account has figures about the threads of one workload that its intervals do not have.
type Account struct {
	// StartNanos is when the first thread began, EndNanos when the last operation was seen to be complete, on the
	// workload's axis; 0 where nothing began or completed.
	StartNanos, EndNanos int64
	// Usage is that of the threads. Of a worker whose operation hangs for good it is what it had used before, if anything.
	thread.Usage
	// Depth counts operations by how many were in flight once they had been submitted: 1, 2 to 3, 4 to 7 … 64 and more,
	// the classes of fio's iodepth_level.
	Depth [7]uint64
	// FirstError is the number of the first error of an operation, above those of the system for a short transfer; 0: none.
	FirstError int
	// Submitted and Completed count calls of the back end by how many operations they took and gave: none, up to 4, 8,
	// 16, 32, 64, and more, the classes of fio's iodepth_submit and iodepth_complete.
	Submitted, Completed [7]uint64
	// Syncs are the service times of fsync and fdatasync, in nanoseconds.
	Syncs stat.Histogram
	// Submissions are by direction how long the system calls took that submitted operations, in nanoseconds, where they
	// were measured; see Run.TimeSubmissions.
	Submissions [interval.DirectionCount]stat.Histogram
	// Priorities are by direction the latencies of operations by their priority, where single operations have one of their own.
	Priorities        [interval.DirectionCount][]PriorityLatency
	verifying.Outcome // of verification
}

// Add merges the account of other threads.
func (a *Account) Add(o *Account) {
	if a.StartNanos == 0 || o.StartNanos != 0 && o.StartNanos < a.StartNanos {
		a.StartNanos = o.StartNanos
	}
	a.EndNanos = max(a.EndNanos, o.EndNanos)
	if a.FirstError == 0 {
		a.FirstError = o.FirstError
	}
	a.Usage.Add(o.Usage)
	for i := range a.Depth {
		a.Depth[i] += o.Depth[i]
		a.Submitted[i] += o.Submitted[i]
		a.Completed[i] += o.Completed[i]
	}
	a.Syncs.Merge(&o.Syncs)
	for d := range a.Submissions {
		a.Submissions[d].Merge(&o.Submissions[d])
	}
	a.addPriorities(o)
	a.Outcome.Add(&o.Outcome)
}

// Exchanged notes one call of the back end.
func (a *Account) Exchanged(inFlight, submitted, completed int) {
	if submitted > 0 {
		a.Depth[min(bits.Len(uint(inFlight))-1, len(a.Depth)-1)] += uint64(submitted)
		a.Submitted[batchClass(submitted)]++
	}
	a.Completed[batchClass(completed)]++
}

// batchClass returns the class of n in Submitted and Completed.
func batchClass(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 4:
		return 1
	case n > 64:
		return 6
	}
	return bits.Len(uint(n-1)) - 1
}
