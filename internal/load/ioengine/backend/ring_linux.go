package backend

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is one io_uring, by raw system calls; see io_uring(7) and linux/io_uring.h for the layout. It is used by one
// thread. Queue entries are written straight into the memory that is shared with the kernel.
type ring struct {
	fd int

	rings, entriesMemory []byte
	scratch              []byte // one page for arguments of io_uring_enter, outside the Go heap

	sq         submissionQueue
	cq         completionQueue
	arg        *ringWaitArg
	timeout    *unix.Timespec
	own        ringUpdate // the ring's place among those that its thread has registered
	handle     uintptr    // what io_uring_enter takes: that place, or the descriptor
	enterFlags uintptr
}

// submissionQueue is where the kernel takes entries from.
type submissionQueue struct {
	head, tail *uint32
	mask       uint32
	next       uint32 // our copy of *tail
	entries    []ringEntry
}

// completionQueue is where the kernel puts results.
type completionQueue struct {
	head, tail *uint32
	mask       uint32
	results    []ringResult
}

// ringEntry is struct io_uring_sqe.
type ringEntry struct {
	opcode      uint8
	flags       uint8
	priority    uint16
	fd          int32
	offset      uint64
	address     uint64
	length      uint32
	opFlags     uint32
	userData    uint64
	bufferIndex uint16
	personality uint16
	spliceFd    int32
	address3    uint64
	_           uint64
}

// ringResult is struct io_uring_cqe.
type ringResult struct {
	userData uint64
	result   int32
	flags    uint32
}

// ringWaitArg is struct io_uring_getevents_arg.
type ringWaitArg struct {
	signalMask     uint64
	signalMaskSize uint32
	minWaitMicros  uint32
	timespec       uint64
}

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, workFd uint32
	_                                                                    [3]uint32
	sqOffsets                                                            ringOffsets
	cqOffsets                                                            ringOffsets
}

// ringOffsets is struct io_sqring_offsets or io_cqring_offsets; the fourth to seventh word differ in name.
type ringOffsets struct {
	head, tail, mask, entries uint32
	four, five, six, _        uint32
	_                         uint64
}

const (
	setupClamp        = 1 << 4
	setupDisabled     = 1 << 6
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	featureSingleMmap = 1 << 0
	featureNoDrop     = 1 << 1
	featureExtArg     = 1 << 8

	enterGetEvents  = 1 << 0
	enterExtArg     = 1 << 3
	enterRegistered = 1 << 4

	registerBuffers     = 0
	unregisterBuffers   = 1
	registerFiles       = 2
	unregisterFiles     = 3
	registerEnableRings = 12
	registerRing        = 20
	unregisterRing      = 21

	ringOffsetEntries = 0x10000000

	opcodeNop        = 0
	opcodeFsync      = 3
	opcodeReadFixed  = 4
	opcodeWriteFixed = 5
	opcodeRangeSync  = 8
	opcodeFallocate  = 17
	opcodeRead       = 22
	opcodeWrite      = 23
	opcodeCommand    = 46

	entryFixedFile = 1 << 0
	entryAsync     = 1 << 4
	fsyncDataSync  = 1 << 0
	commandDiscard = 0x12 << 8 // BLOCK_URING_CMD_DISCARD of linux/blkdev.h
)

// setupChoices are tried in turn: kernels before 6.1 lack the first, before 5.19 the second, before 5.18 the third.
var setupChoices = []uint32{
	setupSingleIssuer | setupDeferTaskrun | setupSubmitAll,
	setupCoopTaskrun | setupSubmitAll,
	setupSubmitAll,
	0,
}

// newRing makes a ring, disabled until enable is called on the thread that will use it.
func newRing(entries int) (*ring, error) {
	var err error
	for _, choice := range setupChoices {
		var r *ring
		if r, err = setUpRing(entries, choice); err == nil || !errors.Is(err, unix.EINVAL) {
			return r, err
		}
	}
	return nil, err
}

func setUpRing(entries int, flags uint32) (*ring, error) {
	params := ringParams{flags: flags | setupClamp | setupDisabled}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("set up io_uring: %w", errno)
	}
	r := &ring{fd: int(fd)}
	if err := r.mapMemory(&params); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *ring) mapMemory(p *ringParams) error {
	// Linux 5.11 brought the last of these; what is older has bugs enough to prefer psync.
	if want := uint32(featureSingleMmap | featureNoDrop | featureExtArg); p.features&want != want {
		return fmt.Errorf("set up io_uring: the kernel is older than 5.11 (features %#x)", p.features)
	}
	sq, cq := &p.sqOffsets, &p.cqOffsets
	const entryBytes, resultBytes = int(unsafe.Sizeof(ringEntry{})), int(unsafe.Sizeof(ringResult{}))
	// The seventh word of the submission offsets is the array; of the completion offsets the fifth is the results.
	size := max(int(sq.six)+4*int(p.sqEntries), int(cq.five)+resultBytes*int(p.cqEntries))
	const protection, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	var err error
	if r.rings, err = unix.Mmap(r.fd, 0, size, protection, kind); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	if r.entriesMemory, err = unix.Mmap(r.fd, ringOffsetEntries, entryBytes*int(p.sqEntries), protection, kind); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	if r.scratch, err = unix.Mmap(-1, 0, 4096, protection, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }
	r.sq.head, r.sq.tail, r.sq.mask = word(sq.head), word(sq.tail), *word(sq.mask)
	r.cq.head, r.cq.tail, r.cq.mask = word(cq.head), word(cq.tail), *word(cq.mask)
	r.sq.entries = unsafe.Slice((*ringEntry)(unsafe.Pointer(&r.entriesMemory[0])), p.sqEntries)
	r.cq.results = unsafe.Slice((*ringResult)(unsafe.Pointer(&r.rings[cq.five])), p.cqEntries)
	for i := range p.sqEntries {
		*word(sq.six + 4*i) = i // entry i is always at place i
	}
	r.arg = (*ringWaitArg)(unsafe.Pointer(&r.scratch[0]))
	r.timeout = (*unix.Timespec)(unsafe.Pointer(&r.scratch[64]))
	r.arg.timespec = uint64(uintptr(unsafe.Pointer(r.timeout)))
	return nil
}

// ringUpdate is struct io_uring_rsrc_update.
type ringUpdate struct {
	offset, _ uint32
	data      uint64
}

// enable lets the calling thread use the ring; with setupSingleIssuer no other may from then on. A ring that is
// registered with its thread need not be looked up by its descriptor in each call; kernels before 5.18 lack it.
func (r *ring) enable() error {
	if err := r.register(registerEnableRings, nil, 0); err != nil {
		return err
	}
	r.handle, r.enterFlags = uintptr(r.fd), enterGetEvents|enterExtArg
	r.own = ringUpdate{offset: math.MaxUint32, data: uint64(r.fd)}
	if r.register(registerRing, unsafe.Pointer(&r.own), 1) == nil {
		r.handle, r.enterFlags = uintptr(r.own.offset), r.enterFlags|enterRegistered
	}
	return nil
}

// disable takes back what enable registered. It is called on the same thread, which may work for others later.
func (r *ring) disable() error {
	if r.enterFlags&enterRegistered == 0 {
		return nil
	}
	r.handle, r.enterFlags = uintptr(r.fd), r.enterFlags&^enterRegistered
	r.own.data = 0 // as the kernel demands
	return r.register(unregisterRing, unsafe.Pointer(&r.own), 1)
}

// interruptionsMax bounds how often a call is made again that signals cut short.
const interruptionsMax = 1000

func (r *ring) register(operation uintptr, argument unsafe.Pointer, count int) error {
	return uninterrupted(func() syscall.Errno {
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), operation, uintptr(argument), uintptr(count), 0, 0)
		return errno
	})
}

// uninterrupted makes a call again when a signal cut it short. To release files or buffers, the kernel waits until no
// operation uses them, and a signal ends that wait with everything as it was; the scheduler of Go sends signals often.
func uninterrupted(call func() syscall.Errno) error {
	errno := call()
	for again := 0; errno == unix.EINTR && again < interruptionsMax; again++ {
		errno = call()
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// entry returns the next free place of the submission queue, emptied. There is one for every slot of the worker.
func (r *ring) entry() *ringEntry {
	e := &r.sq.entries[r.sq.next&r.sq.mask]
	*e = ringEntry{}
	r.sq.next++
	return e
}

// enter submits what entry gave out since the last call and waits for minimum completions, at most waitNanos.
//
// The scheduler of Go is not told of the call. It would take the worker's place to run on away after 20 µs and look again
// every 20 µs, which costs a sixth of the CPU time of direct reads at depth 1; there is a place for each worker (see
// addPlaces). The call does not block but for its wait: io_uring starts operations without blocking or gives them to
// threads of the kernel, the wait is at most waitMaxNanos long, and a signal ends it, by which the scheduler stops this
// thread for a garbage collection.
func (r *ring) enter(minimum uint32, waitNanos int64) error {
	atomic.StoreUint32(r.sq.tail, r.sq.next)
	*r.timeout = unix.NsecToTimespec(waitNanos)
	for {
		submit := r.sq.next - atomic.LoadUint32(r.sq.head)
		_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, r.handle, uintptr(submit), uintptr(minimum),
			r.enterFlags, uintptr(unsafe.Pointer(r.arg)), unsafe.Sizeof(*r.arg))
		switch errno {
		case 0:
			if r.sq.next == atomic.LoadUint32(r.sq.head) {
				return nil
			}
		case unix.ETIME, unix.EINTR:
			return nil
		case unix.EAGAIN, unix.EBUSY:
			// No memory for requests, or completions must be taken first: go on with what there is.
			return nil
		default:
			return fmt.Errorf("submit to io_uring: %w", errno)
		}
	}
}

// hand submits what entry gave out since the last call and does nothing else: completions stay where they are. What the
// kernel does not take goes with the next call of enter.
func (r *ring) hand() error {
	atomic.StoreUint32(r.sq.tail, r.sq.next)
	submit := r.sq.next - atomic.LoadUint32(r.sq.head)
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, r.handle, uintptr(submit), 0, r.enterFlags&^(enterGetEvents|enterExtArg), 0, 0)
	switch errno {
	case 0, unix.EINTR, unix.EAGAIN, unix.EBUSY:
		return nil
	}
	return fmt.Errorf("submit to io_uring: %w", errno)
}

// take copies finished operations into done and frees their places.
func (r *ring) take(done []Completion) int {
	head, n := *r.cq.head, 0
	for tail := atomic.LoadUint32(r.cq.tail); head != tail && n < len(done); head++ {
		c := &r.cq.results[head&r.cq.mask]
		done[n] = Completion{Slot: int32(c.userData), Result: c.result}
		n++
	}
	atomic.StoreUint32(r.cq.head, head)
	return n
}

func (r *ring) close() error {
	var errs []error
	for _, memory := range [][]byte{r.rings, r.entriesMemory, r.scratch} {
		if memory != nil {
			errs = append(errs, unix.Munmap(memory))
		}
	}
	return errors.Join(append(errs, unix.Close(r.fd))...)
}
