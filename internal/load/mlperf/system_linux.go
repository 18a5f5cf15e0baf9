package mlperf

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// forget drops the pages of a file from memory that are on the medium.
func forget(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// nap blocks the thread. Timers of the runtime are late by up to a millisecond, which is a third of the step of a fast accelerator.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}

// memoryBytes is that of this machine, 0 if unknown.
func memoryBytes() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
