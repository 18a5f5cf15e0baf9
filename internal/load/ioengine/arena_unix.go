//go:build unix

package ioengine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// arena is memory for buffers, page-aligned and outside the garbage collector.
type arena []byte

func newArena(size int) (arena, error) {
	if size == 0 {
		return nil, nil
	}
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of buffers: %w", size, err)
	}
	return memory, nil
}

func (a arena) free() error {
	if a == nil {
		return nil
	}
	return unix.Munmap(a)
}
