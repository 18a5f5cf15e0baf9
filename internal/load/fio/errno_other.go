//go:build !unix

package fio

// errnoName is not available on this system.
func errnoName(int) string { return "" }
