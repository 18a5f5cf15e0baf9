package iojob

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve extends a file with allocated space, if the file system supports that; a file that is only written need not hold
// any data.
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
