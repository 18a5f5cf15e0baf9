//go:build unix

package mlperf

import (
	"syscall"

	"github.com/braggdev/bragg/internal/durable"
)

// lock keeps other loads out of a room. The kernel releases it when this process ends.
func lock(dir string) (release func(), err error) {
	return durable.LockDir(dir, syscall.LOCK_EX|syscall.LOCK_NB)
}
