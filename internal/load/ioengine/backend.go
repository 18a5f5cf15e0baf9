package ioengine

import "math"

// backend does operations for one worker. Calls come from the worker's thread only, one per batch.
type backend interface {
	// exchange hands over the slots of batch and waits until at least one operation in flight has completed, or
	// waitNanos are over; 0 does not wait. It puts what has completed into done, which holds every slot there is, and
	// returns how many. An error ends the load.
	exchange(batch []int32, done []completion, waitNanos int64) (int, error)
	// start is called once, on the worker's thread, before the first exchange.
	start() error
	// stop is called once, on the worker's thread, when nothing is in flight any more.
	stop() error
	// cpuNanos returns the CPU time of threads of its own. It is called from another goroutine.
	cpuNanos() int64
	close() error
}

// completion is one finished operation: bytes transferred, or −errno.
type completion struct {
	slot   int32
	result int32
}

// slot is one place of the queue: an operation that is being prepared or is in flight.
type slot struct {
	intended  int64 // when the operation was due; in a closed loop when it was submitted
	submitted int64
	ended     int64 // of a chain: when it ended
	returned  int64 // when the call that submitted it returned; 0: not measured
	offset    int64
	size      int64
	buffer    []byte // as long as the largest block
	clone     int32  // index in the worker
	device    int32  // index in Workload.Devices
	stream    int32  // index in the lane
	span      int64  // bytes from offset on that opRangeSync is about; its size is 0
	number    uint64 // of a write of its stream, where the job verifies
	file      *file
	direction uint8
	kind      opKind
	flags     uint32   // of opRangeSync
	priority  Priority // 0: that of the thread
	async     bool     // io_uring: by a thread of the kernel
	zero      bool     // a read of a verification: of what was trimmed
	vectored  bool     // of a chain: by preadv2 or pwritev2
	busy      bool     // with serialize_overlap: in flight
	givenBack uint8    // io_uring: how often the kernel gave the operation back undone
}

type opKind uint8

const (
	opRead opKind = iota
	opWrite
	opTrim
	opSync
	opDataSync
	opRangeSync
	opBurn // no operation: cpuio computes
)

// nullBackend completes everything at once and touches nothing.
type nullBackend struct{}

func (nullBackend) start() error    { return nil }
func (nullBackend) stop() error     { return nil }
func (nullBackend) close() error    { return nil }
func (nullBackend) cpuNanos() int64 { return 0 }

func (nullBackend) exchange(batch []int32, done []completion, waitNanos int64) (int, error) {
	if len(batch) == 0 {
		pause(waitNanos)
		return 0, nil
	}
	for i, s := range batch {
		done[i] = completion{slot: s, result: wholeSize}
	}
	return len(batch), nil
}

// never is a moment so far away that it does not come.
const never = math.MaxInt64

// wholeSize stands for the size of the operation in the result of a back end that cannot fall short.
const wholeSize = 1<<31 - 1

// submissionTimer is a back end of which it makes sense to ask when the system call that submitted a batch returned: the
// call queues operations and does not do them.
type submissionTimer interface {
	// timeSubmissions makes each exchange that has a batch submit it by a call that does not wait, and read the clock
	// when that call returns.
	timeSubmissions(clock func() int64)
	// submittedAt returns that moment for the last exchange that had a batch.
	submittedAt() int64
}
