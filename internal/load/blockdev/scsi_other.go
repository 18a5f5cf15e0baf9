//go:build !linux

package blockdev

// DiskOf returns path: this system has no second name for disks.
func DiskOf(path string) (string, error) { return path, nil }
