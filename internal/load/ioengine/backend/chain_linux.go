//go:build linux && (amd64 || arm64)

package backend

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const ChainsPossible = true

// Chain does operations of one lane, one after the other.
type Chain struct {
	slots  []Slot
	shift  int64 // from the scheduler's clock to the axis of the run
	Length int   // operations that are made at once
	Left   int   // operations that are made and not done: calls[:left]
	rested int64 // by the scheduler's clock, when it last chose this goroutine
	which  [ChainMax]int32
	calls  [ChainMax]chainCall
}

// chainCall is one system call. Its memory does not move, because nothing of it is on a stack.
type chainCall struct {
	number  uintptr
	args    [6]uintptr
	vector  ioVector
	whole   uintptr // result of a call that did all of it
	result  uintptr
	errno   syscall.Errno
	started int64
	ended   int64
}

// ioVector is struct iovec with an address that the garbage collector does not follow: that of an arena.
type ioVector struct{ base, length uintptr }

// NewChain makes the chain of a lane's slots; now is this moment on the axis of the run.
func NewChain(slots []Slot, now int64) *Chain {
	return &Chain{slots: slots, shift: now - nanotime(), Length: 1}
}

// Add makes calls of slots.
func (c *Chain) Add(batch []int32) {
	for _, i := range batch {
		c.which[c.Left] = i
		c.calls[c.Left].prepare(&c.slots[i])
		c.Left++
	}
}

// prepare is perform, put off.
func (c *chainCall) prepare(s *Slot) {
	fd := uintptr(s.File.Fd)
	c.whole = 0
	switch s.Kind {
	case OpRead, OpWrite:
	case OpDataSync:
		c.number, c.args = unix.SYS_FDATASYNC, [6]uintptr{fd}
		return
	case OpRangeSync:
		c.number, c.args = unix.SYS_SYNC_FILE_RANGE, [6]uintptr{fd, uintptr(s.Offset), uintptr(s.Span), uintptr(s.Flags)}
		return
	default:
		c.number, c.args = unix.SYS_FSYNC, [6]uintptr{fd}
		return
	}
	c.whole = uintptr(s.Size)
	address, offset, flags := uintptr(unsafe.Pointer(&s.Buffer[0])), uintptr(s.Offset), s.File.flags
	plain, vectored := uintptr(unix.SYS_PREAD64), uintptr(unix.SYS_PREADV2)
	if s.Kind == OpWrite {
		plain, vectored, flags = unix.SYS_PWRITE64, unix.SYS_PWRITEV2, flags|s.File.Atomic
	}
	if !s.Vectored && flags == 0 {
		c.number, c.args = plain, [6]uintptr{fd, address, uintptr(s.Size), offset}
		return
	}
	c.vector = ioVector{address, uintptr(s.Size)}
	c.number, c.args = vectored, [6]uintptr{fd, uintptr(unsafe.Pointer(&c.vector)), 1, offset, 0, uintptr(flags)}
}

// Run does calls until all are done, one has failed, it has lasted ChainNanosMax, or the end on the run's axis is reached.
func (c *Chain) Run(done []Completion, end int64) int {
	begun := nanotime()
	limit := begun + ChainNanosMax
	if end != Never {
		limit = min(limit, end-c.shift)
	}
	n := c.perform(c.calls[:c.Left], limit)
	if n == 0 {
		return 0
	}
	for i := range n {
		call, s := &c.calls[i], &c.slots[c.which[i]]
		s.Submitted, s.Ended = call.started+c.shift, call.ended+c.shift
		if s.Intended == Never {
			s.Intended = s.Submitted
		}
		done[i] = Completion{Slot: c.which[i], Result: int32(call.result)}
		if call.errno != 0 {
			done[i].Result = resultOf(0, call.errno)
		}
	}
	switch lasted := c.calls[n-1].ended - begun; {
	case n < c.Left && !c.calls[n-1].failed() || lasted > ChainNanosMax:
		c.Length = max(1, n/2)
	case lasted < ChainNanosMax/2:
		c.Length = min(2*c.Length, len(c.slots))
	}
	c.Left = copy(c.which[:], c.which[n:c.Left])
	for i := range c.Left {
		c.calls[i].prepare(&c.slots[c.which[i]])
	}
	return n
}

// Tired reports whether the scheduler should choose again.
func (c *Chain) Tired() bool { return nanotime()-c.rested >= chainRestNanos }

// Rest lets it.
func (c *Chain) Rest() {
	goyield()
	c.rested = nanotime()
}

// Cancel gives back what was made and not done.
func (c *Chain) Cancel(done []Completion) int {
	n := c.Left
	for i := range n {
		done[i] = Completion{Slot: c.which[i], Result: Undone}
	}
	c.Left = 0
	return n
}

// failed reports whether the call did not do all that it was for. It is part of perform.
//
//go:nosplit
func (c *chainCall) failed() bool { return c.errno != 0 || c.result != c.whole }

// perform does calls one after the other until one has failed, because a job may end at its first error, or the clock of
// the scheduler has reached limit, and returns how many it did.
// Between entersyscall and exitsyscall the scheduler may take this thread's place to run on for others and collect
// garbage, as during any system call: nothing may be called there that grows the stack, and no pointer be stored.
//
//go:nosplit
//go:norace
func (c *Chain) perform(calls []chainCall, limit int64) int {
	n := 0
	entersyscall()
	now := nanotime()
	for n < len(calls) && now < limit {
		call := &calls[n]
		call.started = now
		for {
			r, _, errno := syscall.RawSyscall6(call.number, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5])
			call.result, call.errno = r, errno
			if errno != syscall.EINTR {
				break
			}
		}
		now = nanotime()
		call.ended = now
		n++
		if call.failed() {
			break
		}
	}
	exitsyscall()
	return n
}

// The first three are what package syscall itself uses, the fourth is Gosched without waking a thread for others. Programs that
// make system calls of their own use them (gVisor); the runtime keeps their names and types for them, go.dev/issue/67401.

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

//go:linkname nanotime runtime.nanotime
func nanotime() int64

//go:linkname goyield runtime.goyield
func goyield()
