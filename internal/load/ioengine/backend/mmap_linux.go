package backend

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// mapping is a file in memory, shared by all workers that use it.
type mapping struct {
	memory []byte
	size   int64
}

// MapInto maps a whole file, unless it is mapped already. Pages come when they are touched.
func (f *File) MapInto(writes bool, order string) error {
	if f.mapped != nil {
		return nil
	}
	if f.Size == 0 {
		return errors.New("map a file that is empty")
	}
	protection := unix.PROT_READ
	if writes {
		protection |= unix.PROT_WRITE
	}
	memory, err := unix.Mmap(f.Fd, 0, int(f.Size), protection, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes: %w", f.Size, err)
	}
	advice := unix.MADV_NORMAL
	switch order {
	case fiojob.AdviceRandom:
		advice = unix.MADV_RANDOM
	case fiojob.AdviceSequential:
		advice = unix.MADV_SEQUENTIAL
	}
	if err := unix.Madvise(memory, advice); err != nil {
		return errors.Join(fmt.Errorf("advise on mapped memory: %w", err), unix.Munmap(memory))
	}
	f.mapped = &mapping{memory: memory, size: f.Size}
	return nil
}

func (m *mapping) close() error { return unix.Munmap(m.memory) }

// performMapped does one operation by copying, and msync for a sync. Where direct access is requested, each write is
// brought to the medium, because memory has no other way. A page that the medium cannot give, or that lies behind the
// end of a file that was truncated meanwhile, is a fault of the processor that does not say why; the same operation without
// the mapping does, and where it should succeed the fault is EIO.
func performMapped(s *Slot) (result int32) {
	defer func() {
		if recover() == nil {
			return
		}
		if result = perform(s); int64(result) == s.Size {
			result = -int32(unix.EIO)
		}
	}()
	memory := s.File.mapped.memory
	switch s.Kind {
	case OpRead:
		return int32(copy(s.Buffer[:s.Size], memory[s.Offset:]))
	case OpWrite:
		n := int32(copy(memory[s.Offset:s.Offset+s.Size], s.Buffer))
		if s.File.Direct || s.File.syncWrites {
			if err := syncMapped(memory, s.Offset, s.Size); err != nil {
				return resultOf(0, err)
			}
		}
		return n
	case OpTrim, OpRangeSync:
		return perform(s)
	}
	return resultOf(0, syncMapped(memory, 0, int64(len(memory))))
}

// syncMapped writes back the pages of a range.
func syncMapped(memory []byte, offset, size int64) error {
	page := int64(unix.Getpagesize())
	from := offset / page * page
	return unix.Msync(memory[from:offset+size], unix.MS_SYNC)
}

// catchFaults makes faults of mapped memory panics, which performMapped catches, on the goroutine that calls it.
func catchFaults() { debug.SetPanicOnFault(true) }

// performVector does one operation with preadv2 or pwritev2.
func performVector(s *Slot) int32 {
	switch s.Kind {
	case OpRead, OpWrite:
		return s.File.vector(s.Kind == OpWrite, s.Buffer[:s.Size], s.Offset)
	}
	return perform(s)
}

// vector moves one buffer.
func (f *File) vector(write bool, buffer []byte, offset int64) int32 {
	number, flags := uintptr(unix.SYS_PREADV2), f.flags
	if write {
		number, flags = unix.SYS_PWRITEV2, flags|f.Atomic
	}
	v := unix.Iovec{Base: &buffer[0]}
	v.SetLen(len(buffer))
	for {
		n, _, errno := unix.Syscall6(number, uintptr(f.Fd), uintptr(unsafe.Pointer(&v)), 1, uintptr(offset), uintptr(offset>>32), uintptr(flags))
		switch errno {
		case 0:
			return int32(n)
		case unix.EINTR:
		default:
			return resultOf(0, errno)
		}
	}
}
