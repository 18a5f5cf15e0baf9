package backend

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ProbeUring tries to create a ring, which is the only way to find out whether the kernel allows it: io_uring may be
// disabled (kernel.io_uring_disabled), blocked by a seccomp filter as in most containers, or missing.
func ProbeUring() error {
	r, err := newRing(1)
	if err == nil {
		return r.close()
	}
	why := err
	if setting, readErr := os.ReadFile("/proc/sys/kernel/io_uring_disabled"); readErr == nil {
		if value := strings.TrimSpace(string(setting)); value != "0" {
			why = fmt.Errorf("kernel.io_uring_disabled=%s: %w", value, err)
		}
	}
	return why
}

// uring does operations with io_uring: one system call submits a batch and waits for the first completion.
// Files are registered always, buffers where the limit of locked memory allows it.
type uring struct {
	ring  *ring
	slots []Slot
	fixed bool // buffers are registered
	trims bool // some operations are trims
	// blocking: the kernel has no asynchronous discard (before 6.12), so that trims of devices block this thread, as they
	// do in fio.
	blocking bool
	// clock, where set, is read when a call that only submits has returned; the moment is in returned.
	clock    func() int64
	returned int64
	flying   int
}

// fixedBufferMax is the largest memory that can be registered as one buffer.
const fixedBufferMax = 1 << 30

// NewUring makes the back end of some slots, whose buffers are in one memory. trims says that some operations are trims.
func NewUring(slots []Slot, memory Arena, files []*File, trims bool) (Backend, error) {
	r, err := newRing(len(slots))
	if err != nil {
		return nil, err
	}
	b := &uring{ring: r, slots: slots, trims: trims}
	if len(r.sq.entries) < len(slots) {
		return nil, errors.Join(fmt.Errorf("set up io_uring: queue depths of one worker add up to %d, more than %d",
			len(slots), len(r.sq.entries)), r.close())
	}
	// Registered once, descriptors and pages of buffers need not be looked up for each operation.
	descriptors := make([]int32, len(files))
	for i, f := range files {
		descriptors[i] = int32(f.Fd)
	}
	if err := r.register(registerFiles, unsafe.Pointer(&descriptors[0]), len(descriptors)); err != nil {
		return nil, errors.Join(fmt.Errorf("register files with io_uring: %w", err), r.close())
	}
	if n := len(memory); n > 0 && n <= fixedBufferMax {
		vector := unix.Iovec{Base: &memory[0]}
		vector.SetLen(n)
		// Refused where the limit of locked memory is too low; operations then pin their buffers one by one.
		b.fixed = r.register(registerBuffers, unsafe.Pointer(&vector), 1) == nil
	}
	return b, nil
}

func (b *uring) Start() error {
	if err := b.ring.enable(); err != nil {
		return fmt.Errorf("enable io_uring: %w", err)
	}
	return nil
}

// Stop releases files and buffers. A ring that is only closed keeps them until the kernel comes round to it, and a file
// system could not be unmounted meanwhile.
func (b *uring) Stop() error {
	if err := b.ring.disable(); err != nil {
		return fmt.Errorf("release io_uring: %w", err)
	}
	if err := b.ring.register(unregisterFiles, nil, 0); err != nil {
		return fmt.Errorf("release files of io_uring: %w", err)
	}
	if b.fixed {
		if err := b.ring.register(unregisterBuffers, nil, 0); err != nil {
			return fmt.Errorf("release buffers of io_uring: %w", err)
		}
	}
	return nil
}

func (b *uring) Exchange(batch []int32, done []Completion, waitNanos int64) (int, error) {
	for _, i := range batch {
		b.slots[i].givenBack = 0
		b.prepare(i)
	}
	b.flying += len(batch)
	n, err := b.submit(len(batch) > 0, done, waitNanos)
	n = b.again(done[:n])
	b.flying -= n
	if b.trims {
		b.settle(done[:n])
	}
	return n, err
}

// givenBackMax is how often an operation is handed over once more before its error counts.
const givenBackMax = 200

// again hands over, with the next call, operations that the kernel gave back undone, and returns how many others there are,
// which it moves to the front. Nothing here cancels operations: the kernel does, when an operation has to block and no thread
// of its own can be made for that because a signal is waiting for this thread. Kernels up to 6.15 try three times within
// microseconds, and the scheduler of Go sends signals often. The time goes on counting.
func (b *uring) again(done []Completion) int {
	kept := 0
	for _, c := range done {
		if s := &b.slots[c.Slot]; c.Result == -int32(unix.ECANCELED) && s.givenBack < givenBackMax {
			s.givenBack++
			b.prepare(c.Slot)
			continue
		}
		done[kept] = c
		kept++
	}
	return kept
}

// submit hands over the entries that were prepared and takes what has completed.
func (b *uring) submit(some bool, done []Completion, waitNanos int64) (int, error) {
	n := b.ring.take(done)
	if some && b.clock != nil {
		if err := b.ring.hand(); err != nil {
			return n, err
		}
		b.returned = b.clock()
		if n += b.ring.take(done[n:]); n == b.flying {
			return n, nil
		}
	}
	minimum := uint32(0)
	if n == 0 && waitNanos > 0 {
		minimum = 1
	}
	if err := b.ring.enter(minimum, waitNanos); err != nil {
		return n, err
	}
	return n + b.ring.take(done[n:]), nil
}

// settle gives trims their result: the kernel answers 0, or that it does not know the command.
func (b *uring) settle(done []Completion) {
	for i := range done {
		c, s := &done[i], &b.slots[done[i].Slot]
		if s.Kind != OpTrim {
			continue
		}
		switch {
		case b.blocking && s.File.Device:
			c.Result = s.File.trim(s.Offset, s.Size)
		case c.Result == 0:
			c.Result = WholeSize
		case s.File.Device && (c.Result == -int32(unix.EOPNOTSUPP) || c.Result == -int32(unix.EINVAL)):
			// Without the command the device may still take the request of old.
			if c.Result = s.File.trim(s.Offset, s.Size); c.Result == WholeSize {
				b.blocking = true
			}
		}
	}
}

func (b *uring) TimeSubmissions(clock func() int64) { b.clock = clock }

func (b *uring) SubmittedAt() int64 { return b.returned }

// prepare writes the queue entry of one slot.
func (b *uring) prepare(i int32) {
	s, e := &b.slots[i], b.ring.entry()
	e.userData = uint64(i)
	e.flags, e.fd = entryFixedFile, s.File.Index
	switch {
	case s.Kind == OpRead && b.fixed:
		e.opcode = opcodeReadFixed
	case s.Kind == OpRead:
		e.opcode = opcodeRead
	case s.Kind == OpWrite && b.fixed:
		e.opcode = opcodeWriteFixed
	case s.Kind == OpWrite:
		e.opcode = opcodeWrite
	case s.Kind == OpTrim:
		b.prepareTrim(s, e)
		return
	case s.Kind == OpDataSync:
		e.opcode, e.opFlags = opcodeFsync, fsyncDataSync
		return
	case s.Kind == OpRangeSync:
		e.opcode, e.opFlags, e.offset = opcodeRangeSync, s.Flags, uint64(s.Offset)
		if s.Span <= math.MaxUint32 {
			e.length = uint32(s.Span)
		} // else 0, which means all up to the end of the file: an entry has no room for more
		return
	default:
		e.opcode = opcodeFsync
		return
	}
	e.opFlags, e.priority = s.File.flags, uint16(s.Priority)
	if s.Kind == OpWrite {
		e.opFlags |= s.File.Atomic
	}
	if s.Async {
		e.flags |= entryAsync
	}
	e.offset = uint64(s.Offset)
	e.address = uint64(uintptr(unsafe.Pointer(&s.Buffer[0])))
	e.length = uint32(s.Size)
}

// prepareTrim writes the entry of a discard or, for a file, of a hole.
func (b *uring) prepareTrim(s *Slot, e *ringEntry) {
	if !s.File.Device {
		e.opcode, e.offset, e.address = opcodeFallocate, uint64(s.Offset), uint64(s.Size)
		e.length = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
		return
	}
	if b.blocking {
		e.opcode, e.flags = opcodeNop, 0
		return // settle does it
	}
	e.opcode, e.offset = opcodeCommand, commandDiscard
	e.address, e.address3 = uint64(s.Offset), uint64(s.Size)
}

// CPUNanos knows nothing of the kernel's own worker threads, which do what cannot be started without blocking.
func (b *uring) CPUNanos() int64 { return 0 }

func (b *uring) Close() error { return b.ring.close() }
