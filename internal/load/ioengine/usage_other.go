//go:build !linux

package ioengine

// Only Linux tells the usage of one thread.
type usage struct{}

func threadUsage() usage { return usage{} }

func (a *Account) addUsage(usage, usage) {}
