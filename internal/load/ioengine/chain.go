package ioengine

import "github.com/braggdev/bragg/internal/interval"

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
	chainMax = 16
	// chainNanosMax is how long a chain lasts before its worker records what was done. The calls of one chain are as many
	// as fit, measured by the chain before.
	chainNanosMax = int64(500_000)
	// chainRestNanos is how long chains go on before the scheduler may choose again. The monitor of the scheduler notes a
	// goroutine that was not chosen for 10 ms, takes its place, and then looks every 20 µs for a while; each look takes a
	// CPU from a worker, and where that one held the lock of a file, the other writers of the file go to sleep.
	chainRestNanos = int64(8_000_000)
	// chainBytesMax bounds the buffers of a chain of writes, so that they stay in the processor's cache.
	chainBytesMax = int64(64 << 10)
)

// undone is the result of an operation that was made and not begun, because its lane ended before.
const undone = -1 << 31

// places is how many slots a clone has: as many as its queue is deep, or those of a chain.
func (s *jobSpec) places() int {
	if !s.chains() {
		return s.depth
	}
	if s.writes {
		return int(min(chainMax, max(1, chainBytesMax/s.bufferBytes())))
	}
	return chainMax
}

// chains tells whether operations of the job can be made before those in front of them have ended: nothing in it depends
// on when operations end, or on what they bring.
func (s *jobSpec) chains() bool {
	j := &s.job
	if !chainsPossible || s.kind != kindPsync && s.kind != kindPvsync2 || s.depth != 1 || j.Direct || s.trims {
		return false
	}
	if s.verify != nil || s.replay != nil || s.priorities != nil || j.SerializeOverlap || j.ThinkTime > 0 || newWatch(s) != nil {
		return false
	}
	for i := range s.clones {
		if s.clones[i].rate != [interval.DirectionCount]float64{} {
			return false
		}
	}
	return true
}

// beginChains is called before the first operation. A lane that waits for others takes its operations one by one.
func (w *worker) beginChains() {
	if len(w.lanes) != 1 || w.lanes[0].job.places() == w.lanes[0].job.depth {
		return
	}
	l := &w.lanes[0]
	if l.flow != nil || l.ramp != nil || l.recording != nil {
		l.reserve = len(w.slots) - 1
		return
	}
	w.chain = newChain(w)
	l.reserve, l.submitMax = len(w.slots)-1, len(w.slots)
}

// exchangeChain is exchange for a worker with a chain.
func (w *worker) exchangeChain(wake, now int64) int {
	l := &w.lanes[0]
	w.inFlight += w.batched
	c := w.chain
	c.add(w.batch[:w.batched])
	if c.left > 0 && !l.ending && (l.closed == closedTime || w.shared.stop.Load()) {
		n := c.cancel(w.done)
		w.inFlight -= n
		return n
	}
	end := int64(never)
	if l.closed == stillOpen {
		end = l.end
	}
	wait := min(max(wake-now, 0), waitMaxNanos)
	w.mu.Unlock()
	if c.left == 0 {
		pause(wait)
	}
	w.rest()
	n := c.run(w.done, end)
	w.mu.Lock()
	for range n {
		w.account.exchanged(1, 1, 1)
	}
	w.inFlight -= n
	l.reserve = len(w.slots) - c.length
	return n
}
