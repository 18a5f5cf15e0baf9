package backend

// A job of one operation at a time on buffered files completes most of them within a microsecond. Telling the scheduler of
// Go of each system call, and going round the worker's loop for each, then costs a quarter of the time. So a lane of such
// a job makes several operations at once, a chain, and its worker does them one after the other within one entry into the
// scheduler's state for system calls. Every operation still begins when the one before has ended and has times of its own.
//
// The alternative, system calls that the scheduler is not told of at all, is as fast and dangerous: one that blocks, on
// storage that hangs, holds one of the scheduler's places, the next garbage collection waits for that place, and with it
// waits everything that would tell the user. Within a chain a call that blocks is to the scheduler what every other system
// call is: it takes the place back and goes on.
const (
	ChainMax = 16
	// chainNanosMax is how long a chain lasts before its worker records what was done. The calls of one chain are as many
	// as fit, measured by the chain before.
	chainNanosMax = int64(500_000)
	// chainRestNanos is how long chains go on before the scheduler may choose again. The monitor of the scheduler notes a
	// goroutine that was not chosen for 10 ms, takes its place, and then looks every 20 µs for a while; each look takes a
	// CPU from a worker, and where that one held the lock of a file, the other writers of the file go to sleep.
	chainRestNanos = int64(8_000_000)
	// ChainBytesMax bounds the buffers of a chain of writes, so that they stay in the processor's cache.
	ChainBytesMax = int64(64 << 10)
)

// Undone is the result of an operation that was made and not begun, because its lane ended before.
const Undone = -1 << 31
