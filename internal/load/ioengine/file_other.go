//go:build !linux

package ioengine

import (
	"errors"
	"fmt"
	"os"
)

func (f *file) readAt(buffer []byte, offset int64) int32 {
	return resultOf(f.handle.ReadAt(buffer, offset))
}

func (f *file) writeAt(buffer []byte, offset int64) int32 {
	return resultOf(f.handle.WriteAt(buffer, offset))
}

func (f *file) sync(bool) int32 { return resultOf(0, f.handle.Sync()) }

// system knows no file systems, so that files are flushed one by one.
func (f *file) system() (uint64, bool) { return 0, false }

func (f *file) syncSystem() int32 { return f.sync(false) }

func (f *file) syncRange(_, _ int64, _ uint32) int32 { return -errnoUnsupported }

func (f *file) trim(_, _ int64) int32 { return -errnoUnsupported }

// access says how a device is opened.
type access struct {
	write            bool
	direct           bool
	sync             string
	mapped           bool
	hint             string
	advice           string
	noWait, uncached bool
	atomic           bool
}

// openDevice opens what exists and never makes a file.
func openDevice(path string, a access) (*file, error) {
	if a.atomic {
		return nil, fmt.Errorf("open %q: atomic=1: %w", path, errors.ErrUnsupported)
	}
	flags := os.O_RDONLY
	if a.write {
		flags = os.O_RDWR
	}
	if a.sync == "sync" || a.sync == "dsync" {
		flags |= os.O_SYNC
	}
	if a.direct {
		flags |= directFlags
	}
	handle, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	f := &file{handle: handle, fd: -1, align: 1}
	if a.direct {
		if f.align, err = goDirect(handle); err == nil {
			f.direct = true
		} else {
			f.align, f.buffered = 1, fmt.Sprintf("no direct access to %s: %v", path, err)
		}
	}
	if f.size, err = sizeOf(handle); err != nil {
		handle.Close()
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return f, nil
}

// forget would drop what the page cache has of a file; there is no call for it.
func (f *file) forget() {}
