//go:build unix

package fio

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// errnoName returns "EIO" for 5.
func errnoName(number int) string { return unix.ErrnoName(syscall.Errno(number)) }
