// Package content makes what jobs write: a function of a stream's key and the number of the write, so that it can be made again
// to check what was stored.
//
//	job ──Of──▶ Content ──Write(key, n)──▶ the bytes of write n: random words, zeros, a pattern, compressible, repeated
//
// What Fill writes is incompressible and never the same twice: every 8-byte word is a word of a random pool, taken from
// a random place and combined with a random key that changes every chunkBytes bytes. Compressors and deduplication,
// at any window and block size, find nothing: equal stretches of the pool differ in every word. It costs one load, one
// exclusive-or and one store per word, several times less than a random generator. The content of an operation depends
// on its key alone, so that it can be made again to check what was stored.
package content

import (
	"encoding/binary"
	"sync"

	"github.com/braggdev/bragg/internal/load"
)

const (
	poolBytes  = 256 << 10
	chunkBytes = 4 << 10
)

// Pool has chunkBytes bytes more than random places can start at.
var Pool = sync.OnceValue(func() []byte {
	pool := make([]byte, poolBytes+chunkBytes)
	for i := 0; i+8 <= len(pool); i += 8 {
		binary.LittleEndian.PutUint64(pool[i:], load.Draw(0x2545f4914f6cdd1d, uint64(i)))
	}
	return pool
})

// fillRandom fills buffer with the content of an operation. Its length is a multiple of 8 in all but odd job files;
// a rest below 8 bytes is filled too.
func fillRandom(buffer, pool []byte, key uint64) {
	for chunk := uint64(0); len(buffer) > 0; chunk++ {
		word := load.Draw(key, chunk)
		at := int(word>>32) & (poolBytes - 8)
		count := min(len(buffer), chunkBytes)
		fillChunk(buffer[:count], pool[at:at+chunkBytes], load.Draw(word, chunk))
		buffer = buffer[count:]
	}
}

// fillChunk is unrolled by a cache line, which is as fast as the wide instructions of crypto/subtle here.
func fillChunk(to, from []byte, key uint64) {
	for len(to) >= 64 && len(from) >= 64 {
		t, f := to[:64:64], from[:64:64]
		binary.LittleEndian.PutUint64(t[0:], binary.LittleEndian.Uint64(f[0:])^key)
		binary.LittleEndian.PutUint64(t[8:], binary.LittleEndian.Uint64(f[8:])^key)
		binary.LittleEndian.PutUint64(t[16:], binary.LittleEndian.Uint64(f[16:])^key)
		binary.LittleEndian.PutUint64(t[24:], binary.LittleEndian.Uint64(f[24:])^key)
		binary.LittleEndian.PutUint64(t[32:], binary.LittleEndian.Uint64(f[32:])^key)
		binary.LittleEndian.PutUint64(t[40:], binary.LittleEndian.Uint64(f[40:])^key)
		binary.LittleEndian.PutUint64(t[48:], binary.LittleEndian.Uint64(f[48:])^key)
		binary.LittleEndian.PutUint64(t[56:], binary.LittleEndian.Uint64(f[56:])^key)
		to, from = to[64:], from[64:]
	}
	for len(to) >= 8 && len(from) >= 8 {
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(from)^key)
		to, from = to[8:], from[8:]
	}
	for i := range to {
		to[i] = from[i] ^ byte(key>>(8*(i%8)))
	}
}

// Fill writes incompressible content into buffer, another one for every key. It is what jobs write that shape nothing.
func Fill(buffer []byte, key uint64) { fillRandom(buffer, Pool(), key) }
