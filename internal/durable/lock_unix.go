//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockDir locks a folder: shared for writing a file there, exclusive for removing partly written ones. The kernel releases the
// lock when its holder dies.
func LockDir(dir string, how int) (release func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return lockOpen(d, how)
}

func lockOpen(d *os.File, how int) (release func(), err error) {
	if err := unix.Flock(int(d.Fd()), how); err != nil {
		_ = d.Close()
		return nil, err
	}
	return func() { _ = Unlock(d) }, nil
}

// Unlock releases a lock and closes its file. Closing the file is not enough: a child process between fork and exec holds a copy
// of the descriptor, and with it the lock.
func Unlock(file *os.File) error {
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}
