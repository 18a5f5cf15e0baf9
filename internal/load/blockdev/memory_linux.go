package blockdev

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryDisks are the drivers of disks that are memory, or nothing at all.
var memoryDisks = []string{"ram", "zram", "nullb"}

// InMemory returns the file system or device if what f stores is in memory: "tmpfs", "ram0". Otherwise, or if that cannot be
// found out, it is empty.
func InMemory(f *os.File) string {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if f == nil || unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	if kindOf(st.Mode) == Block {
		name := host().nameOfNumber(numberOf(st.Rdev))
		for _, driver := range memoryDisks {
			if number := strings.TrimPrefix(name, driver); number != name && strings.Trim(number, "0123456789") == "" {
				return name
			}
		}
		return ""
	}
	switch {
	case unix.Fstatfs(int(f.Fd()), &fs) != nil:
	case fs.Type == unix.TMPFS_MAGIC:
		return "tmpfs"
	case fs.Type == unix.RAMFS_MAGIC:
		return "ramfs"
	}
	return ""
}
