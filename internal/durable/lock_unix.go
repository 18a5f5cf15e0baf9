//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockDir locks a folder: shared by those who write a file there, exclusively by who removes half-written ones. The kernel
// gives the lock back when its holder dies.
func LockDir(dir string, how int) (release func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), how); err != nil {
		_ = d.Close()
		return nil, err
	}
	return func() { _ = Unlock(d) }, nil
}

// Unlock gives a lock back and closes its file. Closing alone would not do: a process that is just being started holds
// a copy of the descriptor until it executes its program, and the lock with it.
func Unlock(file *os.File) error {
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}
