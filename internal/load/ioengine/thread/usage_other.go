//go:build !linux

package thread

// UsageNow returns nothing: only Linux tells the usage of one thread.
func UsageNow() Usage { return Usage{} }
