//go:build unix

package backend

import "syscall"

func statFile(path string) error {
	var st syscall.Stat_t
	return syscall.Stat(path, &st)
}
