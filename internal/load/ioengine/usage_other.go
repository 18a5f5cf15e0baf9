//go:build !linux

package ioengine

// Only Linux tells the usage of one thread.
func (a *Account) beginUsage() {}
func (a *Account) takeUsage()  {}
