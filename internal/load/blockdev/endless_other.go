//go:build !linux

package blockdev

import "os"

// Endless returns false: this system has no such devices.
func Endless(os.FileInfo) bool { return false }
