//go:build unix

package ioengine

import "syscall"

func statFile(path string) error {
	var st syscall.Stat_t
	return syscall.Stat(path, &st)
}
