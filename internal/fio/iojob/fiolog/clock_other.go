//go:build !linux

package fiolog

// sinceUnix supports only wall time.
func sinceUnix(int) int64 { return 0 }
