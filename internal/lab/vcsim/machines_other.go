//go:build !linux

package vcsim

func newMachines(_, _ string) machines { return nil }
