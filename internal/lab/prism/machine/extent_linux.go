package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// eachExtent calls do for the parts of a file that were written.
func eachExtent(f *os.File, size int64, do func(offset, length int64) error) error {
	for at := int64(0); at < size; {
		begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // a hole to the end
		}
		if err != nil {
			return do(at, size-at)
		}
		end, err := unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE)
		if err != nil {
			end = size
		}
		if err := do(begin, end-begin); err != nil {
			return err
		}
		at = end
	}
	return nil
}
