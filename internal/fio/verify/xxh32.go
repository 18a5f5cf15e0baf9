package verify

import (
	"encoding/binary"
	"math/bits"
)

// Primes of XXH32 (Collet: xxHash fast digest algorithm, specification 0.1.1, 2018).
const (
	prime1 uint32 = 2654435761
	prime2 uint32 = 2246822519
	prime3 uint32 = 3266489917
	prime4 uint32 = 668265263
	prime5 uint32 = 374761393
)

// xxh32 is XXH32 of data. The available modules only have XXH64.
func xxh32(data []byte, seed uint32) uint32 {
	le := binary.LittleEndian
	h := seed + prime5
	total := uint32(len(data))
	if len(data) >= 16 {
		a, b, c, d := seed+prime1, seed+prime2, seed, seed
		a, d = a+prime2, d-prime1
		for ; len(data) >= 16; data = data[16:] {
			a = bits.RotateLeft32(a+le.Uint32(data[0:])*prime2, 13) * prime1
			b = bits.RotateLeft32(b+le.Uint32(data[4:])*prime2, 13) * prime1
			c = bits.RotateLeft32(c+le.Uint32(data[8:])*prime2, 13) * prime1
			d = bits.RotateLeft32(d+le.Uint32(data[12:])*prime2, 13) * prime1
		}
		h = bits.RotateLeft32(a, 1) + bits.RotateLeft32(b, 7) + bits.RotateLeft32(c, 12) + bits.RotateLeft32(d, 18)
	}
	h += total
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h+le.Uint32(data)*prime3, 17) * prime4
	}
	for _, x := range data {
		h = bits.RotateLeft32(h+uint32(x)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
