//go:build unix

package ioengine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func errnoName(class int) string { return unix.ErrnoName(syscall.Errno(class)) }
