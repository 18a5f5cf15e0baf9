package tree

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags are those of open(2).
func (a Access) openFlags() (flags int, err error) {
	if a.Direct {
		flags |= unix.O_DIRECT
	}
	if a.Sync {
		flags |= unix.O_DSYNC
	}
	return flags, nil
}

// syncAll writes all data of a file system to its medium.
func syncAll(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// class names a failure: "ENOSPC".
func class(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		if name := unix.ErrnoName(number); name != "" {
			return name
		}
	}
	return "error"
}

func accessible(path string) error { return unix.Access(path, unix.R_OK) }
