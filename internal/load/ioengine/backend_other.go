//go:build !linux

package ioengine

import "errors"

func (f *file) allocate(_, _ int64, _ bool) int32 { return -errnoUnsupported }

var errOnlyLinux = errors.New("not on this system")

type mapping struct{}

func (m *mapping) close() error { return nil }

func probeUring() error { return errOnlyLinux }

func probeLibaio() error { return errOnlyLinux }

func newUringBackend([]slot, arena, []*file, bool) (backend, error) { return nil, errOnlyLinux }

func newLibaioBackend([]slot) (backend, error) { return nil, errOnlyLinux }

func (f *file) mapInto(bool, string) error { return errOnlyLinux }

func catchFaults() {}

func performMapped(s *slot) int32 { return perform(s) }

// performVector is perform: one buffer moves in one call either way.
func performVector(s *slot) int32 { return perform(s) }
