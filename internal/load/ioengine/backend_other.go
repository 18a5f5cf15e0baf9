//go:build !linux

package ioengine

import "errors"

func (f *file) allocate(_, _ int64, _ bool) int32 { return -errnoUnsupported }

var errOnlyLinux = errors.New("not on this system")

type mapping struct{}

func (m *mapping) close() error { return nil }

func probeUring() error { return errOnlyLinux }

func probeLibaio() error { return errOnlyLinux }

func newUringBackend(*worker, []*file) (backend, error) { return nil, errOnlyLinux }

func newLibaioBackend(*worker) (backend, error) { return nil, errOnlyLinux }

func mapAll(*jobSpec, []*file) error { return errOnlyLinux }

func catchFaults() {}

func performMapped(s *slot) int32 { return perform(s) }

// performVector is perform: one buffer moves in one call either way.
func performVector(s *slot) int32 { return perform(s) }
