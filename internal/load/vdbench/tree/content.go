package tree

import (
	"unsafe"

	"github.com/braggdev/bragg/internal/load"
	filler "github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/unit"
)

// content is what a thread writes: random bytes that no other write of any thread has, so that neither compression nor deduplication
// reduces them.
type content struct {
	buffer []byte
	key, n uint64
}

const (
	alignBytes  = 4096 // of buffers and places for direct access
	bufferBytes = 128 * unit.KiB
)

func newContent(key uint64) *content { return &content{buffer: aligned(bufferBytes), key: key} }

// aligned returns a buffer at an address that direct access allows.
func aligned(bytes int64) []byte {
	b := make([]byte, bytes+alignBytes)
	if off := int(uintptr(unsafe.Pointer(&b[0])) % alignBytes); off > 0 {
		b = b[alignBytes-off:]
	}
	return b[:bytes]
}

// of begins the content of another key.
func (c *content) of(key uint64) *content {
	c.key, c.n = key, 0
	return c
}

// next returns what the next write holds, which is valid until the one after it.
func (c *content) next(bytes int64) []byte {
	b := c.room(bytes)
	c.n++
	filler.Fill(b, load.Key(c.key, c.n))
	return b
}

// room returns a buffer for a read.
func (c *content) room(bytes int64) []byte {
	if int64(len(c.buffer)) < bytes {
		c.buffer = aligned(bytes)
	}
	return c.buffer[:bytes]
}
