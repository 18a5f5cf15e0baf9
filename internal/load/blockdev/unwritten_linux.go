package blockdev

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/extent"
)

// ReadWarning returns how many bytes of the extents of a regular file were never written: holes, space that was only
// reserved, and ranges beyond the end. Reading them causes no device I/O, so that the results do not describe a device. For
// a loop device, the file below it is examined. For any other block device the result is 0: it is not known.
//
// It first flushes written data that is not flushed yet: until then, reserved space looks unwritten.
func ReadWarning(f *os.File, extents []extent.Extent) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("look for unwritten parts of %q: %w", f.Name(), err)
	}
	if kindOf(st.Mode) == Block {
		return belowLoop(f, extents)
	}
	if kindOf(st.Mode) != Regular {
		return 0, nil
	}
	var unwritten []extent.Extent
	for _, e := range extent.Merge(extents) {
		end := min(e.End(), st.Size)
		if beyond := e.End() - max(end, e.Offset); beyond > 0 {
			unwritten = append(unwritten, extent.Extent{Offset: max(end, e.Offset), Length: beyond})
		}
		if end <= e.Offset {
			continue
		}
		within := extent.Extent{Offset: e.Offset, Length: end - e.Offset}
		reserved, err := reservedIn(int(f.Fd()), within)
		if err != nil {
			return 0, fmt.Errorf("look for reserved parts of %q: %w", f.Name(), err)
		}
		holes, err := holesIn(int(f.Fd()), within)
		if err != nil {
			return 0, fmt.Errorf("look for holes of %q: %w", f.Name(), err)
		}
		unwritten = append(append(unwritten, reserved...), holes...)
	}
	return extent.Common(extents, unwritten), nil
}

// belowLoop examines the file of a loop device, if that file can be opened here and is the one that the kernel uses.
// Discarding a part of such a device makes a hole in its file.
func belowLoop(f *os.File, extents []extent.Extent) (int64, error) {
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return 0, nil // not a loop device
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("look for unwritten parts of %q: %w", f.Name(), err)
	}
	s := host()
	path := s.attribute(s.nameOfNumber(numberOf(st.Rdev)), "loop", "backing_file")
	file, err := os.Open(path)
	if err != nil {
		return 0, nil // not accessible: deleted, or in another mount namespace
	}
	defer file.Close()
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || fileID(st) != (FileID{Device: info.Device, Inode: info.Inode}) || kindOf(st.Mode) != Regular {
		return 0, err
	}
	// Data that was written to the device but not yet to the file would look unwritten. This does not flush the cache of
	// the device, which would count as a write in its counters.
	if err := unix.SyncFileRange(int(f.Fd()), 0, 0, syncWrite); err != nil {
		return 0, fmt.Errorf("look for unwritten parts of %q: %w", f.Name(), err)
	}
	below := make([]extent.Extent, len(extents))
	for i, e := range extents {
		below[i] = extent.Extent{Offset: e.Offset + int64(info.Offset), Length: e.Length}
	}
	return ReadWarning(file, below)
}

// syncWrite starts writing dirty pages and waits for completion: see sync_file_range(2).
const syncWrite = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER

// holesIn lists the holes of a file within an extent. File systems without holes report all as data. It moves the file
// offset; callers must not rely on it.
func holesIn(fd int, within extent.Extent) ([]extent.Extent, error) {
	var holes []extent.Extent
	for at, end := within.Offset, within.End(); at < end; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return append(holes, extent.Extent{Offset: at, Length: end - at}), nil // no data up to the end
		}
		if errors.Is(err, unix.EINVAL) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if data > at {
			holes = append(holes, extent.Extent{Offset: at, Length: min(data, end) - at})
		}
		if at, err = unix.Seek(fd, data, unix.SEEK_HOLE); err != nil {
			return nil, err
		}
	}
	return holes, nil
}

// The request FS_IOC_FIEMAP and its structures, from the kernel's Documentation/filesystems/fiemap.rst.
const (
	fiemapRequest   = 0xc020660b
	fiemapSync      = 0x1   // flush first
	fiemapLast      = 0x1   // of an extent: none follows in the file
	fiemapUnwritten = 0x800 // of an extent: reserved, reads as zeros
	fiemapCount     = 128
)

type fiemapExtent struct {
	logical, physical, length uint64
	_                         [2]uint64
	flags                     uint32
	_                         [3]uint32
}

type fiemap struct {
	start, length       uint64
	flags, mapped, room uint32
	_                   uint32
	extents             [fiemapCount]fiemapExtent
}

// reservedIn lists space of a file that was reserved but never written. File systems without extents have none.
func reservedIn(fd int, within extent.Extent) ([]extent.Extent, error) {
	var found []extent.Extent
	for at, end := within.Offset, within.End(); at < end; {
		request := fiemap{start: uint64(at), length: uint64(end - at), flags: fiemapSync, room: fiemapCount}
		err := ioctl(fd, fiemapRequest, unsafe.Pointer(&request))
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EBADR) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if request.mapped == 0 {
			break
		}
		for _, e := range request.extents[:request.mapped] {
			if e.flags&fiemapUnwritten != 0 {
				found = append(found, extent.Extent{Offset: int64(e.logical), Length: int64(e.length)})
			}
			if e.flags&fiemapLast != 0 {
				return found, nil
			}
			at = int64(e.logical + e.length)
		}
	}
	return found, nil
}
