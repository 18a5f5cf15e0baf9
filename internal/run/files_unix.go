//go:build unix

package run

import "syscall"

// openFilesMax is how many files this process may have open; 0 where it is not known.
func openFilesMax() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
