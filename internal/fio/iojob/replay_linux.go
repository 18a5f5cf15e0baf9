package iojob

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeBytes is the free space in the file system of a file, which need not exist.
func freeBytes(path string) (int64, bool) {
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err == nil {
			return int64(st.Bavail) * st.Bsize, true
		}
		up := filepath.Dir(path)
		if up == path {
			return 0, false
		}
		path = up
	}
}
