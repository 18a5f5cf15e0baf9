//go:build !linux

package ioengine

import (
	"fmt"
	"os"
	"syscall"
)

func (f *file) readAt(buffer []byte, offset int64) int32 {
	return resultOf(f.handle.ReadAt(buffer, offset))
}

func (f *file) writeAt(buffer []byte, offset int64) int32 {
	return resultOf(f.handle.WriteAt(buffer, offset))
}

func (f *file) sync(bool) int32 { return resultOf(0, f.handle.Sync()) }

func (f *file) trim(_, _ int64) int32 { return -int32(syscall.ENOSYS) }

// access says how a device is opened.
type access struct {
	write            bool
	direct           bool
	sync             string
	mapped           bool
	hint             string
	noWait, uncached bool
}

// openDevice opens what exists. Direct access is not offered on this system yet.
func openDevice(path string, a access) (*file, error) {
	flags := os.O_RDONLY
	if a.write {
		flags = os.O_RDWR
	}
	if a.sync == "sync" || a.sync == "dsync" {
		flags |= os.O_SYNC
	}
	handle, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	f := &file{handle: handle, fd: -1, align: 1}
	if a.direct {
		f.note = "buffered: no direct access on this system"
	}
	if f.size, err = sizeOf(handle); err != nil {
		handle.Close()
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return f, nil
}
