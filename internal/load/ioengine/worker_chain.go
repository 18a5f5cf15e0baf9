package ioengine

import (
	"runtime"

	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// beginChains is called before the first operation. A lane that waits for others takes its operations one by one.
func (w *worker) beginChains() {
	if len(w.lanes) != 1 || w.lanes[0].Job.Places() == w.lanes[0].Job.Depth {
		return
	}
	l := &w.lanes[0]
	if l.flow != nil || l.ramp != nil || l.recording != nil {
		l.reserve = len(w.slots) - 1
		return
	}
	w.chain = backend.NewChain(w.slots, w.shared.clock.Now())
	l.reserve, l.submitMax = len(w.slots)-1, len(w.slots)
}

// exchangeChain is exchange for a worker with a chain.
func (w *worker) exchangeChain(wake, now int64) int {
	l := &w.lanes[0]
	w.inFlight += w.batch.Count
	c := w.chain
	c.Add(w.batch.Slots[:w.batch.Count])
	if c.Left > 0 && (l.syncs == nil || !l.syncs.ending) && (l.Closed == queue.ClosedTime || w.shared.stop.Load()) {
		n := c.Cancel(w.done)
		w.inFlight -= n
		return n
	}
	end := int64(backend.Never)
	if l.Closed == queue.StillOpen {
		end = l.end
	}
	wait := min(max(wake-now, 0), waitMaxNanos)
	w.chainBegan = now
	w.mu.Unlock()
	if c.Left == 0 {
		thread.Pause(wait)
	}
	w.rest()
	n := c.Run(w.done, end)
	w.mu.Lock()
	for range n {
		w.account.Exchanged(1, 1, 1)
	}
	w.inFlight -= n
	l.reserve = len(w.slots) - c.Length
	return n
}

// rest lets the scheduler choose. The worker may go on in another thread, and the one that it had may work for others meanwhile;
// not so with settings of the thread, which is then exclusive.
func (w *worker) rest() {
	switch {
	case !w.chain.Tired():
	case w.settings != (thread.Settings{}):
		w.chain.Rest()
	default:
		former := w.leaveThread()
		runtime.UnlockOSThread() // a locked one hands its place to another thread, and gets it back by two more wake-ups
		w.chain.Rest()
		runtime.LockOSThread()
		w.arrive(former)
	}
}

// leaveThread closes the accounts of this thread, which others may have next, and returns its id. The clock is read first: that
// brings what getrusage says up to date, which is as of the last tick of the kernel otherwise.
func (w *worker) leaveThread() int {
	w.lock()
	defer w.mu.Unlock()
	w.cpu.Leave()
	w.account.Usage.Add(thread.UsageNow().Since(w.cameWith))
	return thread.ID()
}

// arrive opens the accounts of this thread, in the same order.
func (w *worker) arrive(former int) {
	w.lock()
	defer w.mu.Unlock()
	moved := thread.ID() != former
	if moved {
		thread.SharpenTimers()
	}
	w.cpu.Arrive(moved)
	w.cameWith = thread.UsageNow()
}
