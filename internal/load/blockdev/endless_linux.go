package blockdev

import (
	"os"
	"syscall"
)

// Endless reports whether a file is one of the kernel's devices that take and give without end and keep nothing: null and
// zero. Job files use them where the generator itself is measured.
func Endless(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&os.ModeCharDevice != 0 && sink(numberOf(stat.Rdev))
}
