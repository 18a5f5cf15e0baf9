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

// dropCache takes a file out of the page cache, so that a buffered read is a read, as fio's invalidate does.
func dropCache(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // whoever may only write it has no cache to drop
	}
	defer f.Close()
	_ = unix.Fdatasync(int(f.Fd())) // dirty pages would stay
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
