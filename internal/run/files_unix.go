//go:build unix

package run

import (
	"io/fs"
	"syscall"
)

// openFilesMax is how many files this process may have open; 0 where it is not known.
func openFilesMax() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}

// ownerOf returns the user who owns a file.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
