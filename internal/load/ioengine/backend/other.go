//go:build !linux

package backend

import "errors"

func (f *File) allocate(_, _ int64, _ bool) int32 { return -errnoUnsupported }

var errOnlyLinux = errors.New("not on this system")

type mapping struct{}

func (m *mapping) close() error { return nil }

func ProbeUring() error { return errOnlyLinux }

func ProbeLibaio() error { return errOnlyLinux }

func NewUring([]Slot, Arena, []*File, bool) (Backend, error) { return nil, errOnlyLinux }

func NewLibaio([]Slot) (Backend, error) { return nil, errOnlyLinux }

func (f *File) MapInto(bool, string) error { return errOnlyLinux }

func catchFaults() {}

func performMapped(s *Slot) int32 { return perform(s) }

// performVector is perform: one buffer moves in one call either way.
func performVector(s *Slot) int32 { return perform(s) }
