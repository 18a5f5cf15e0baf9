package agent

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates the blocks of a file, which read as zeros. A file system that cannot, as some of a network, has a sparse file.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
