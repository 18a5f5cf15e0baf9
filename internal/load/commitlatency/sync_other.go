//go:build !linux

package commitlatency

import "os"

// fdatasync syncs metadata as well where there is no fdatasync.
func fdatasync(f *os.File) error { return f.Sync() }
