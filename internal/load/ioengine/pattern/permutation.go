package pattern

import (
	"math/bits"

	"github.com/braggdev/bragg/internal/load"
)

// permutation is a keyed bijection of [0, size): a random map without the map. It needs no memory per block, and any
// place of it can be computed alone. Numbers are permuted in the next larger power of two by rounds that are each
// invertible there (add, multiply by an odd number, fold the high half onto the low one), and walk on along their cycle
// until they fall below size (Black, Rogaway: Ciphers with Arbitrary Finite Domains, 2002); below 2 rounds on average.
type permutation struct {
	size  uint64
	mask  uint64
	shift uint
	add   [permutationRounds]uint64
	mul   [permutationRounds]uint64
}

const permutationRounds = 4

func newPermutation(size, key uint64) permutation {
	p := permutation{size: size}
	if size > 1 {
		width := uint(bits.Len64(size - 1))
		p.mask = 1<<width - 1
		p.shift = (width + 1) / 2
	}
	for i := range uint64(permutationRounds) {
		p.add[i] = load.Draw(key, 2*i)
		p.mul[i] = load.Draw(key, 2*i+1) | 1
	}
	return p
}

func (p *permutation) at(i uint64) uint64 {
	for {
		for r := range permutationRounds {
			i = (i + p.add[r]) * p.mul[r] & p.mask
			i ^= i >> p.shift
		}
		if i < p.size || p.mask == 0 {
			return i
		}
	}
}
