package backend

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocate gives a range of a file its space; keepSize leaves the length of the file as it is.
func (f *File) allocate(offset, size int64, keepSize bool) int32 {
	mode := uint32(0)
	if keepSize {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	for {
		err := unix.Fallocate(f.Fd, mode, offset, size)
		switch {
		case err == nil:
			return WholeSize
		case !errors.Is(err, unix.EINTR):
			return resultOf(0, err)
		}
	}
}
