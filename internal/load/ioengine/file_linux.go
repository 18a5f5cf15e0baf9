package ioengine

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func (f *file) readAt(buffer []byte, offset int64) int32 {
	for {
		n, err := unix.Pread(f.fd, buffer, offset)
		if err != unix.EINTR {
			return resultOf(n, err)
		}
	}
}

func (f *file) writeAt(buffer []byte, offset int64) int32 {
	for {
		n, err := unix.Pwrite(f.fd, buffer, offset)
		if err != unix.EINTR {
			return resultOf(n, err)
		}
	}
}

func (f *file) sync(dataOnly bool) int32 {
	if dataOnly {
		return resultOf(0, unix.Fdatasync(f.fd))
	}
	return resultOf(0, unix.Fsync(f.fd))
}

// system tells which file system the file lies on; false for a block device, which lies on none that holds its data.
func (f *file) system() (uint64, bool) {
	var st unix.Stat_t
	if f.device || unix.Fstat(f.fd, &st) != nil {
		return 0, false
	}
	return st.Dev, true
}

// syncSystem flushes that file system.
func (f *file) syncSystem() int32 { return resultOf(0, unix.Syncfs(f.fd)) }

// syncRange starts or awaits the writing back of a range of the page cache.
func (f *file) syncRange(offset, size int64, flags uint32) int32 {
	return resultOf(0, unix.SyncFileRange(f.fd, offset, size, int(flags)))
}

// trim discards a range of a block device, or makes a hole in a file. It returns the whole size.
func (f *file) trim(offset, size int64) int32 {
	var err error
	if f.device {
		err = discard(f.fd, offset, size)
	} else {
		err = unix.Fallocate(f.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, size)
	}
	if err != nil {
		return resultOf(0, err)
	}
	return wholeSize
}

// ioctlDiscard is BLKDISCARD of linux/fs.h.
const ioctlDiscard = 0x1277

// discard tells a block device that nobody needs what lies in a range.
func discard(fd int, offset, size int64) error {
	span := [2]uint64{uint64(offset), uint64(size)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlDiscard, uintptr(unsafe.Pointer(&span)))
	if errno != 0 {
		return errno
	}
	return nil
}

// access says how a device is opened.
type access struct {
	write            bool
	direct           bool
	sync             string // "", "sync", "dsync"
	mapped           bool   // operations are copies of memory
	hint             string // write_hint
	advice           string // one of fiojob.Advice…, never ""
	noWait, uncached bool
	atomic           bool // writes
}

// openDevice opens what exists and never makes a file. A file system that has no direct access (tmpfs) gives a
// buffered file with a note.
func openDevice(path string, a access) (*file, error) {
	flags := unix.O_RDONLY
	if a.write {
		flags = unix.O_RDWR
	}
	switch a.sync {
	case "sync":
		flags |= unix.O_SYNC
	case "dsync":
		flags |= unix.O_DSYNC
	}
	f := &file{align: 1, direct: a.direct, syncWrites: a.sync == "sync" || a.sync == "dsync"}
	if a.direct && !a.mapped {
		flags |= unix.O_DIRECT
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) && a.direct {
		f.direct = false
		f.buffered = fmt.Sprintf("the file system of %s has no direct access", path)
		fd, err = unix.Open(path, flags&^unix.O_DIRECT|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f.fd, f.handle = fd, os.NewFile(uintptr(fd), path)
	f.device = isBlockDevice(f.handle)
	if f.size, err = sizeOf(f.handle); err == nil && f.direct && !a.mapped {
		f.align = directAlignment(fd)
	}
	if err == nil {
		err = f.advise(a)
	}
	if err == nil && a.atomic {
		err = f.makeAtomic()
	}
	if err != nil {
		f.handle.Close()
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
func (f *file) advise(a access) error {
	if a.noWait {
		f.flags |= flagNoWait
	}
	if a.uncached && !a.direct {
		f.flags |= flagUncached
	}
	// Advice on order is about reading ahead. What cannot take it, or reads nothing ahead, is not the worse for it.
	switch {
	case a.advice == fiojob.AdviceRandom:
		_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_RANDOM)
	case a.advice == fiojob.AdviceSequential:
		_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_SEQUENTIAL)
	}
	lifetime, ok := map[string]uint64{"none": 1, "short": 2, "medium": 3, "long": 4, "extreme": 5}[a.hint]
	if !ok {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(f.fd), unix.F_SET_RW_HINT, uintptr(unsafe.Pointer(&lifetime))); errno != 0 {
		return fmt.Errorf("write_hint=%s: %w", a.hint, errno)
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

// forget drops what the page cache has of a file, as far as it is written back.
// Pages that are mapped would stay.
func (f *file) forget() {
	if f.mapped != nil {
		_ = unix.Madvise(f.mapped.memory, unix.MADV_DONTNEED)
	}
	_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED)
}
