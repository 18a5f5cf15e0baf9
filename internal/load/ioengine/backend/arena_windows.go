package backend

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Arena is memory for buffers, page-aligned, as access past the cache needs it, and outside the garbage collector.
type Arena []byte

// NewArena allocates it.
func NewArena(size int) (Arena, error) {
	if size == 0 {
		return nil, nil
	}
	at, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of buffers: %w", size, err)
	}
	// The address is not a Go pointer that could move: it is read as one through its own variable.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size), nil
}

// Free gives it back.
func (a Arena) Free() error {
	if a == nil {
		return nil
	}
	return windows.VirtualFree(uintptr(unsafe.Pointer(&a[0])), 0, windows.MEM_RELEASE)
}
