//go:build !linux

package memory

import "errors"

var errLinux = errors.New("memory is measured on Linux only")

// CPUs needs Linux.
func CPUs() ([]int, error) { return nil, errLinux }

// Pin needs Linux.
func Pin(int) error { return errLinux }

// Region is memory; there is none outside of Linux.
type Region struct{}

// Map needs Linux.
func Map(int64, bool) (*Region, error) { return nil, errLinux }

// Bytes returns nothing.
func (*Region) Bytes() []byte { return nil }

// Floats returns nothing.
func (*Region) Floats() []float64 { return nil }

// HugeBytes returns 0.
func (*Region) HugeBytes() int64 { return 0 }

// Close has nothing to release.
func (*Region) Close() error { return nil }
