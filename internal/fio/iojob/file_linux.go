package iojob

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes a file longer with space of its own, where the file system can; a file that will only be written need
// not hold anything.
func reserve(f *os.File, have, need int64) error {
	if need <= have {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, have, need-have)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(need)
	}
	return err
}
