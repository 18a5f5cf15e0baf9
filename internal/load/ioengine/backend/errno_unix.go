//go:build unix

package backend

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// What represents an error without a number of its own.
const errnoOther = int32(unix.EIO)

func errnoName(class int) string { return unix.ErrnoName(syscall.Errno(class)) }
