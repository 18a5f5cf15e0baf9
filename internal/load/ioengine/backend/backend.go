// Package backend executes operations: with io_uring, libaio, blocking calls, mapped memory, other calls of fio's
// engines, or not at all.
//
//	Slots of a queue, made by a worker ──Exchange──▶ the kernel ──▶ Completions
//	device ──Open──▶ File, which all operations of a slot go to; Of names the back end of an ioengine
//
// The package chooses no operations and measures only the submission time of a batch. Chains (chain.go) are operations
// of one lane that are executed one after the other within one entry into the scheduler.
package backend

import (
	"math"

	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Backend does operations for one worker. Calls come from the worker's thread only, one per batch.
type Backend interface {
	// Exchange hands over the slots of batch and waits until at least one operation in flight has completed, or
	// waitNanos are over; 0 does not wait. It puts what has completed into done, which holds every slot there is, and
	// returns how many. An error ends the load.
	Exchange(batch []int32, done []Completion, waitNanos int64) (int, error)
	// Start is called once, on the worker's thread, before the first exchange.
	Start() error
	// Stop is called once, on the worker's thread, when nothing is in flight any more.
	Stop() error
	// CPUNanos returns the CPU time of threads of its own. It is called from another goroutine.
	CPUNanos() int64
	Close() error
}

// Completion is one finished operation: bytes transferred, or −errno.
type Completion struct {
	Slot   int32
	Result int32
}

// Slot is one place of the queue: an operation that is being prepared or is in flight.
type Slot struct {
	Times
	Offset    int64
	Size      int64
	Buffer    []byte // as long as the largest block
	Clone     int32  // index in the worker
	Device    int32  // index in Workload.Devices
	Stream    int32  // index in the lane
	Span      int64  // bytes from offset on that OpRangeSync is about; its size is 0
	Number    uint64 // of a write of its stream, where the job verifies
	File      *File
	Direction uint8
	Kind      OpKind
	Flags     uint32          // of OpRangeSync
	Priority  thread.Priority // 0: that of the thread
	Async     bool            // io_uring: by a thread of the kernel
	Zero      bool            // a read of a verification: of what was trimmed
	Vectored  bool            // of a chain: by preadv2 or pwritev2
	Busy      bool            // with serialize_overlap: in flight
	givenBack uint8           // io_uring: how often the kernel gave the operation back undone
}

// Times are the moments of an operation, on the workload's axis.
type Times struct {
	Intended  int64 // when the operation was due; in a closed loop when it was submitted
	Submitted int64
	Ended     int64 // of a chain: when it ended
	Returned  int64 // when the call that submitted it returned; 0: not measured
}

// OpKind is what an operation does.
type OpKind uint8

const (
	OpRead OpKind = iota
	OpWrite
	OpTrim
	OpSync
	OpDataSync
	OpRangeSync
	OpBurn // no operation: cpuio computes
)

// Null completes everything at once and touches nothing.
type Null struct{}

func (Null) Start() error    { return nil }
func (Null) Stop() error     { return nil }
func (Null) Close() error    { return nil }
func (Null) CPUNanos() int64 { return 0 }

func (Null) Exchange(batch []int32, done []Completion, waitNanos int64) (int, error) {
	if len(batch) == 0 {
		thread.Pause(waitNanos)
		return 0, nil
	}
	for i, s := range batch {
		done[i] = Completion{Slot: s, Result: WholeSize}
	}
	return len(batch), nil
}

// Never is a time that is never reached.
const Never = math.MaxInt64

// WholeSize represents the size of the operation in the result of a back end without short transfers.
const WholeSize = 1<<31 - 1

// SubmissionTimer is a back end of which it makes sense to ask when the system call that submitted a batch returned: the
// call queues operations and does not do them.
type SubmissionTimer interface {
	// TimeSubmissions makes each exchange that has a batch submit it by a call that does not wait, and read the clock
	// when that call returns.
	TimeSubmissions(clock func() int64)
	// SubmittedAt returns that moment for the last exchange that had a batch.
	SubmittedAt() int64
}

// Threaded is a back end with threads of its own.
type Threaded interface {
	// Lap returns the most that one of them used and waited since the former lap. It is called from another goroutine.
	Lap() (busiest, waited int64)
}
