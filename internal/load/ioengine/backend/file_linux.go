package backend

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func (f *File) readAt(buffer []byte, offset int64) int32 {
	for {
		n, err := unix.Pread(f.Fd, buffer, offset)
		if err != unix.EINTR {
			return resultOf(n, err)
		}
	}
}

func (f *File) writeAt(buffer []byte, offset int64) int32 {
	for {
		n, err := unix.Pwrite(f.Fd, buffer, offset)
		if err != unix.EINTR {
			return resultOf(n, err)
		}
	}
}

// Sync flushes the file.
func (f *File) Sync(dataOnly bool) int32 {
	if dataOnly {
		return resultOf(0, unix.Fdatasync(f.Fd))
	}
	return resultOf(0, unix.Fsync(f.Fd))
}

// System tells which file system the file lies on; false for a block device, which lies on none that holds its data.
func (f *File) System() (uint64, bool) {
	var st unix.Stat_t
	if f.Device || unix.Fstat(f.Fd, &st) != nil {
		return 0, false
	}
	return st.Dev, true
}

// SyncSystem flushes that file system.
func (f *File) SyncSystem() int32 { return resultOf(0, unix.Syncfs(f.Fd)) }

// syncRange starts or awaits the writing back of a range of the page cache.
func (f *File) syncRange(offset, size int64, flags uint32) int32 {
	return resultOf(0, unix.SyncFileRange(f.Fd, offset, size, int(flags)))
}

// trim discards a range of a block device, or makes a hole in a file. It returns the whole size.
func (f *File) trim(offset, size int64) int32 {
	var err error
	if f.Device {
		err = discard(f.Fd, offset, size)
	} else {
		err = unix.Fallocate(f.Fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, size)
	}
	if err != nil {
		return resultOf(0, err)
	}
	return WholeSize
}

// ioctlDiscard is BLKDISCARD of linux/fs.h.
const ioctlDiscard = 0x1277

// discard tells a block device that the data in a range is not needed.
func discard(fd int, offset, size int64) error {
	span := [2]uint64{uint64(offset), uint64(size)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlDiscard, uintptr(unsafe.Pointer(&span)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Access says how a device is opened.
type Access struct {
	Write            bool
	Direct           bool
	Sync             string // "", "sync", "dsync"
	Mapped           bool   // operations are copies of memory
	Hint             string // write_hint
	Advice           string // one of fiojob.Advice…, never ""
	NoWait, Uncached bool
	Atomic           bool // writes
}

// Open opens what exists and never makes a file. A file system that has no direct access (tmpfs) gives a
// buffered file with a note.
func Open(path string, a Access) (*File, error) {
	flags := unix.O_RDONLY
	if a.Write {
		flags = unix.O_RDWR
	}
	switch a.Sync {
	case "sync":
		flags |= unix.O_SYNC
	case "dsync":
		flags |= unix.O_DSYNC
	}
	f := &File{Align: 1, Direct: a.Direct, syncWrites: a.Sync == "sync" || a.Sync == "dsync"}
	if a.Direct && !a.Mapped {
		flags |= unix.O_DIRECT
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) && a.Direct {
		f.Direct = false
		f.Buffered = fmt.Sprintf("the file system of %s has no direct access", path)
		fd, err = unix.Open(path, flags&^unix.O_DIRECT|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f.Fd, f.Handle = fd, os.NewFile(uintptr(fd), path)
	f.Device = isBlockDevice(f.Handle)
	if f.Size, err = sizeOf(f.Handle); err == nil && f.Direct && !a.Mapped {
		f.Align = directAlignment(fd)
	}
	if err == nil {
		err = f.advise(a)
	}
	if err == nil && a.Atomic {
		err = f.makeAtomic()
	}
	if err != nil {
		f.Handle.Close()
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return f, nil
}

// Flags of preadv2(2), which io_uring and libaio take too.
const (
	flagNoWait   = 0x08 // RWF_NOWAIT
	flagUncached = 0x80 // RWF_DONTCACHE, since Linux 6.14
)

// advise tells the kernel how a file will be used.
func (f *File) advise(a Access) error {
	if a.NoWait {
		f.flags |= flagNoWait
	}
	if a.Uncached && !a.Direct {
		f.flags |= flagUncached
	}
	// Advice on order is about reading ahead. What cannot take it, or reads nothing ahead, is not the worse for it.
	switch {
	case a.Advice == fiojob.AdviceRandom:
		_ = unix.Fadvise(f.Fd, 0, 0, unix.FADV_RANDOM)
	case a.Advice == fiojob.AdviceSequential:
		_ = unix.Fadvise(f.Fd, 0, 0, unix.FADV_SEQUENTIAL)
	}
	lifetime, ok := map[string]uint64{"none": 1, "short": 2, "medium": 3, "long": 4, "extreme": 5}[a.Hint]
	if !ok {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(f.Fd), unix.F_SET_RW_HINT, uintptr(unsafe.Pointer(&lifetime))); errno != 0 {
		return fmt.Errorf("write_hint=%s: %w", a.Hint, errno)
	}
	return nil
}

// directAlignment asks the kernel what direct access must be aligned to: statx since Linux 6.1, the logical block of a
// block device before; 512 where neither is known.
func directAlignment(fd int) int64 {
	var stx unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &stx)
	if err == nil && stx.Mask&unix.STATX_DIOALIGN != 0 && stx.Dio_offset_align > 0 {
		return int64(max(stx.Dio_offset_align, stx.Dio_mem_align))
	}
	if size, err := unix.IoctlGetInt(fd, unix.BLKSSZGET); err == nil && size > 0 {
		return int64(size)
	}
	return 512
}

// Forget drops what the page cache has of a file, as far as it is written back.
// Pages that are mapped would stay.
func (f *File) Forget() {
	if f.mapped != nil {
		_ = unix.Madvise(f.mapped.memory, unix.MADV_DONTNEED)
	}
	_ = unix.Fadvise(f.Fd, 0, 0, unix.FADV_DONTNEED)
}
