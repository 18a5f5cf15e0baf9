//go:build !linux

package backend

import (
	"errors"
	"fmt"
	"os"
)

func (f *File) readAt(buffer []byte, offset int64) int32 {
	return resultOf(f.Handle.ReadAt(buffer, offset))
}

func (f *File) writeAt(buffer []byte, offset int64) int32 {
	return resultOf(f.Handle.WriteAt(buffer, offset))
}

// Sync flushes the file.
func (f *File) Sync(bool) int32 { return resultOf(0, f.Handle.Sync()) }

// System knows no file systems, so that files are flushed one by one.
func (f *File) System() (uint64, bool) { return 0, false }

func (f *File) SyncSystem() int32 { return f.Sync(false) }

func (f *File) syncRange(_, _ int64, _ uint32) int32 { return -errnoUnsupported }

func (f *File) trim(_, _ int64) int32 { return -errnoUnsupported }

// Access says how a device is opened.
type Access struct {
	Write            bool
	Direct           bool
	Sync             string
	Mapped           bool
	Hint             string
	Advice           string
	NoWait, Uncached bool
	Atomic           bool
}

// Open opens what exists and never makes a file.
func Open(path string, a Access) (*File, error) {
	if a.Atomic {
		return nil, fmt.Errorf("open %q: atomic=1: %w", path, errors.ErrUnsupported)
	}
	flags := os.O_RDONLY
	if a.Write {
		flags = os.O_RDWR
	}
	if a.Sync == "sync" || a.Sync == "dsync" {
		flags |= os.O_SYNC
	}
	if a.Direct {
		flags |= directFlags
	}
	handle, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	f := &File{Handle: handle, Fd: -1, Align: 1}
	if a.Direct {
		if f.Align, err = goDirect(handle); err == nil {
			f.Direct = true
		} else {
			f.Align, f.Buffered = 1, fmt.Sprintf("no direct access to %s: %v", path, err)
		}
	}
	if f.Size, err = sizeOf(handle); err != nil {
		handle.Close()
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return f, nil
}

// Forget would drop what the page cache has of a file; there is no call for it.
func (f *File) Forget() {}
