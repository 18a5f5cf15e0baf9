package blockdev

import (
	"os"
	"syscall"
)

// Endless reports whether a file is one of the kernel's devices that have no end and keep no data: null and zero. Job files
// use them to measure the generator itself.
func Endless(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&os.ModeCharDevice != 0 && sink(numberOf(stat.Rdev))
}
