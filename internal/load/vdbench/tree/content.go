package tree

import (
	"encoding/binary"
	"unsafe"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// content is what a thread writes: random bytes that differ in every 512 bytes of every write, so that neither compression nor deduplication
// reduces them.
type content struct {
	buffer []byte
	key, n uint64
}

const (
	alignBytes  = 4096 // of buffers and places for direct access
	stampBytes  = 512
	bufferBytes = 128 * unit.KiB
)

func newContent(key uint64) *content { return &content{buffer: aligned(bufferBytes, key), key: key} }

// aligned returns random bytes at an address that direct access allows.
func aligned(bytes int64, key uint64) []byte {
	b := make([]byte, bytes+alignBytes)
	if off := int(uintptr(unsafe.Pointer(&b[0])) % alignBytes); off > 0 {
		b = b[alignBytes-off:]
	}
	b = b[:bytes]
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], load.Draw(key, uint64(i)))
	}
	return b
}

// next returns what the next write holds, which is valid until the one after it.
func (c *content) next(bytes int64) []byte {
	if int64(len(c.buffer)) < bytes {
		c.buffer = aligned(bytes, c.key)
	}
	c.n++
	word := load.Draw(c.key, ^c.n)
	for i := 0; i+8 <= int(bytes); i += stampBytes {
		binary.LittleEndian.PutUint64(c.buffer[i:], word+uint64(i))
	}
	return c.buffer[:bytes]
}

// room returns a buffer for a read.
func (c *content) room(bytes int64) []byte {
	if int64(len(c.buffer)) < bytes {
		c.buffer = aligned(bytes, c.key)
	}
	return c.buffer[:bytes]
}
