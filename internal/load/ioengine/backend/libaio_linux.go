package backend

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// libaio does operations with the kernel's asynchronous I/O of old, by raw system calls: one submits a batch, one
// takes completions. Buffered operations block in the first; see io_submit(2).
type libaio struct {
	context uintptr
	slots   []Slot
	blocks  []aioBlock
	pending []*aioBlock // not taken by the kernel yet
	events  []aioEvent
	ready   []Completion // what libaio has no command for and is done at once (trims, syncs of a range), and what was refused
	flying  int
	timeout unix.Timespec
	// clock, where set, is read when a batch has been submitted; the moment is in returned.
	clock    func() int64
	returned int64
}

// aioBlock is struct iocb.
type aioBlock struct {
	data     uint64
	_        uint32 // the kernel's
	flags    uint32 // as preadv2 takes them
	opcode   uint16
	priority uint16 // where aioPriority is set
	fd       uint32
	buffer   uint64
	size     uint64
	offset   int64
	_        uint64
	set      uint32 // aioPriority
	_        uint32 // descriptor of a notification
}

// aioEvent is struct io_event.
type aioEvent struct {
	data, _ uint64
	result  int64
	_       int64
}

const (
	aioRead     = 0
	aioWrite    = 1
	aioFsync    = 2
	aioDataSync = 3

	aioPriority = 2 // the block has a priority of its own
)

func NewLibaio(slots []Slot) (Backend, error) {
	n := len(slots)
	b := &libaio{
		slots: slots, blocks: make([]aioBlock, n), pending: make([]*aioBlock, 0, n), events: make([]aioEvent, n),
		ready: make([]Completion, 0, n),
	}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, uintptr(n), uintptr(unsafe.Pointer(&b.context)), 0); errno != 0 {
		return nil, fmt.Errorf("set up libaio for %d operations (fs.aio-max-nr bounds them): %w", n, errno)
	}
	return b, nil
}

// ProbeLibaio returns nil if the kernel lets this process use libaio.
func ProbeLibaio() error {
	b, err := NewLibaio(make([]Slot, 1))
	if err != nil {
		return err
	}
	return b.Close()
}

func (b *libaio) Start() error { return nil }

func (b *libaio) Exchange(batch []int32, done []Completion, waitNanos int64) (int, error) {
	for _, i := range batch {
		b.prepare(i)
	}
	if err := b.submit(); err != nil {
		return 0, err
	}
	if b.clock != nil && len(batch) > 0 {
		b.returned = b.clock()
	}
	n := copy(done, b.ready)
	b.ready = b.ready[:0]
	minimum := uintptr(0)
	if n == 0 && waitNanos > 0 {
		minimum = 1
	}
	if b.flying == 0 {
		if minimum > 0 {
			thread.Pause(waitNanos)
		}
		return n, nil
	}
	b.timeout = unix.NsecToTimespec(waitNanos)
	got, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, b.context, minimum, uintptr(len(b.events)),
		uintptr(unsafe.Pointer(&b.events[0])), uintptr(unsafe.Pointer(&b.timeout)), 0)
	switch errno {
	case 0:
	case unix.EINTR:
		got = 0
	default:
		return n, fmt.Errorf("wait for libaio: %w", errno)
	}
	for i := range b.events[:got] {
		e := &b.events[i]
		done[n] = Completion{Slot: int32(e.data), Result: int32(e.result)}
		n++
	}
	b.flying -= int(got)
	return n, nil
}

func (b *libaio) TimeSubmissions(clock func() int64) { b.clock = clock }

func (b *libaio) SubmittedAt() int64 { return b.returned }

func (b *libaio) prepare(i int32) {
	s, e := &b.slots[i], &b.blocks[i]
	*e = aioBlock{data: uint64(i), fd: uint32(s.File.Fd), offset: s.Offset, size: uint64(s.Size)}
	switch s.Kind {
	case OpTrim, OpRangeSync:
		b.ready = append(b.ready, Completion{Slot: i, Result: perform(s)})
		return
	case OpRead, OpWrite:
		e.opcode, e.flags = aioRead+uint16(s.Kind-OpRead), s.File.flags
		e.buffer = uint64(uintptr(unsafe.Pointer(&s.Buffer[0])))
		if s.Kind == OpWrite {
			e.flags |= s.File.Atomic
		}
		if s.Priority != 0 {
			e.priority, e.set = uint16(s.Priority), aioPriority
		}
	case OpDataSync:
		e.opcode, e.offset, e.size = aioDataSync, 0, 0
	default:
		e.opcode, e.offset, e.size = aioFsync, 0, 0
	}
	b.pending = append(b.pending, e)
}

// submit hands over what is pending. The kernel takes less where its memory for requests is used up; the rest stays for
// the next time, when completions have freed some. An operation that it refuses is an error of that operation alone.
func (b *libaio) submit() error {
	for len(b.pending) > 0 {
		taken, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, b.context, uintptr(len(b.pending)), uintptr(unsafe.Pointer(&b.pending[0])))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN && b.flying > 0:
			return nil
		case errno == unix.EAGAIN || errno == unix.EINVAL || errno == unix.EBADF:
			b.ready = append(b.ready, Completion{Slot: int32(b.pending[0].data), Result: -int32(errno)})
			taken = 1
			b.flying--
		case errno != 0:
			return fmt.Errorf("submit to libaio: %w", errno)
		}
		b.flying += int(taken)
		b.pending = b.pending[:copy(b.pending, b.pending[taken:])]
	}
	return nil
}

func (b *libaio) Stop() error { return nil }

func (b *libaio) CPUNanos() int64 { return 0 }

func (b *libaio) Close() error {
	if b.context == 0 {
		return nil
	}
	_, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, b.context, 0, 0)
	b.context = 0
	if errno != 0 {
		return fmt.Errorf("end libaio: %w", errno)
	}
	return nil
}
