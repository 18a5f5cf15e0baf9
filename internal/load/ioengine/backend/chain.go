package backend

// A job with one operation at a time on buffered files completes most of them within a microsecond. Notifying the Go
// scheduler of each system call, and one iteration of the worker's loop for each, then cost a quarter of the time. So a
// lane of such a job prepares several operations at once, a chain, and its worker executes them one after the other
// within one entry into the scheduler's state for system calls. Every operation still begins when the previous one has
// ended and has its own times.
//
// The alternative, system calls without any notification of the scheduler, is as fast but dangerous: a call that blocks
// on hanging storage holds a P of the scheduler, the next garbage collection waits for that P, and all reporting to the
// user waits with it. Within a chain, the scheduler handles a blocking call like every other system call: it takes the
// P back and continues.
const (
	ChainMax = 16
	// ChainNanosMax is how long a chain lasts before its worker records what was done. The calls of one chain are as many
	// as fit, measured by the chain before.
	ChainNanosMax = int64(500_000)
	// chainRestNanos is how long chains go on before the scheduler may choose again. The monitor of the scheduler notes a
	// goroutine that was not chosen for 10 ms, takes its place, and then looks every 20 µs for a while; each look takes a
	// CPU from a worker, and where that one held the lock of a file, the other writers of the file go to sleep.
	chainRestNanos = int64(8_000_000)
	// ChainBytesMax bounds the buffers of a chain of writes, so that they stay in the processor's cache.
	ChainBytesMax = int64(64 << 10)
)

// Undone is the result of an operation that was prepared and not started, because its lane ended.
const Undone = -1 << 31
