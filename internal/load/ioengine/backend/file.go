package backend

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
)

// File is an open device.
type File struct {
	Handle *os.File
	Index  int32 // among the files of its instance
	Fd     int
	Direct bool
	Device bool  // a block device
	Align  int64 // what offsets, sizes and buffers must be a multiple of: 1 for buffered access
	Size   int64
	flags  uint32 // of every read and write, as preadv2 takes them
	Atomic uint32 // of every write beside flags, where atomic=1
	Limits atomicLimits
	mapped *mapping // with mmap only
	// syncWrites: each write is to be on the medium when it is complete; only mmap must see to it itself.
	syncWrites bool
	Buffered   string // why it has no direct access, where that was requested
}

// Close closes the file, and the memory that it is mapped to.
func (f *File) Close() error {
	if f.Handle == nil {
		return nil
	}
	if f.mapped != nil {
		if err := f.mapped.close(); err != nil {
			return errors.Join(err, f.Handle.Close())
		}
	}
	return f.Handle.Close()
}

func isBlockDevice(handle *os.File) bool {
	info, err := handle.Stat()
	return err == nil && info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0
}

// sizeOf returns the size of a regular file or block device, or that which stands for no end.
func sizeOf(handle *os.File) (int64, error) {
	info, err := handle.Stat()
	if err != nil {
		return 0, err
	}
	if info.Mode().IsRegular() {
		return info.Size(), nil
	}
	if blockdev.Endless(info) {
		return blockdev.EndlessBytes, nil
	}
	if info.Mode()&os.ModeDevice == 0 || info.Mode()&os.ModeCharDevice != 0 {
		return 0, fmt.Errorf("%s is neither a regular file nor a block device", info.Mode().Type())
	}
	return handle.Seek(0, io.SeekEnd)
}

// resultOf turns what the os package returns into a result.
func resultOf(n int, err error) int32 {
	if err == nil || n > 0 {
		return int32(n)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != 0 && errno <= errnoMax {
		return -int32(errno)
	}
	if errors.Is(err, io.EOF) {
		return 0
	}
	return -errnoOther
}

// atomicLimits are the smallest and the largest atomic write of a file, in bytes.
type atomicLimits struct{ Smallest, Largest int64 }

// Flags of sync_file_range(2).
const (
	rangeWaitBefore = 1
	rangeWrite      = 2
	rangeWaitAfter  = 4
)

// RangeFlags are those of sync_file_range(2) that a job asks for.
func RangeFlags(r *fiojob.SyncFileRange) (flags uint32) {
	if r.WaitBefore {
		flags |= rangeWaitBefore
	}
	if r.Write {
		flags |= rangeWrite
	}
	if r.WaitAfter {
		flags |= rangeWaitAfter
	}
	return flags
}
