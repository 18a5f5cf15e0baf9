//go:build unix

package program

import (
	"syscall"

	"github.com/braggdev/bragg/internal/durable"
)

// Lock keeps other loads out of a room. The kernel releases it when this process ends.
func Lock(dir string) (release func(), err error) {
	return durable.LockDir(dir, syscall.LOCK_EX|syscall.LOCK_NB)
}

// LockShared keeps those out that call Lock.
func LockShared(dir string) (release func(), err error) {
	return durable.LockDir(dir, syscall.LOCK_SH|syscall.LOCK_NB)
}
