package ioengine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocate gives a range of a file its space; keepSize leaves the length of the file as it is.
func (f *file) allocate(offset, size int64, keepSize bool) int32 {
	mode := uint32(0)
	if keepSize {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	for {
		err := unix.Fallocate(f.fd, mode, offset, size)
		switch {
		case err == nil:
			return wholeSize
		case !errors.Is(err, unix.EINTR):
			return resultOf(0, err)
		}
	}
}
