//go:build !linux

package ioengine

// threadUsage returns nothing: only Linux tells the usage of one thread.
func threadUsage() Usage { return Usage{} }
