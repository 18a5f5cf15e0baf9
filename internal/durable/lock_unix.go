//go:build unix

package durable

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Holders of locks of folders write or remove a few files meanwhile. But every process that may read a folder can lock it, forever.
const (
	lockWaitMax = 5 * time.Second
	lockPause   = 10 * time.Millisecond
)

// ErrLocked means that a folder stayed locked for longer than bragg locks one.
var ErrLocked = errors.New("another process holds the lock")

// LockDir locks a folder: shared for writing a file there, exclusive for removing partly written ones. The kernel releases the
// lock when its holder dies. Without LOCK_NB, it waits some seconds for another holder.
func LockDir(dir string, how int) (release func(), err error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return lockOpen(d, how)
}

func lockOpen(d *os.File, how int) (release func(), err error) {
	for until := time.Now().Add(lockWaitMax); ; time.Sleep(lockPause) {
		err = unix.Flock(int(d.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || how&unix.LOCK_NB != 0 {
			break
		}
		if time.Now().After(until) {
			err = fmt.Errorf("lock %q: %w for more than %v", d.Name(), ErrLocked, lockWaitMax)
			break
		}
	}
	if err != nil {
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
