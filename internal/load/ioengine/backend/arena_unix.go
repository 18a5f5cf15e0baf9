//go:build unix

package backend

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Arena is memory for buffers, page-aligned and outside the garbage collector.
type Arena []byte

// NewArena allocates it.
func NewArena(size int) (Arena, error) {
	if size == 0 {
		return nil, nil
	}
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of buffers: %w", size, err)
	}
	return memory, nil
}

// Free gives it back.
func (a Arena) Free() error {
	if a == nil {
		return nil
	}
	return unix.Munmap(a)
}
