package load

import "math/bits"

// Random numbers of the program's load are counter-based: the n-th draw of a key is a pure function of key and n, so that
// any operation can be computed again without the ones before it, and two keys never share a sequence. The function is
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).

const goldenGamma = 0x9e3779b97f4a7c15

// Draw returns the n-th 64 random bits of key.
func Draw(key, n uint64) uint64 { return mix64(key + (n+1)*goldenGamma) }

// DrawUnit returns the n-th number of key in [0, 1), of 53 random bits.
func DrawUnit(key, n uint64) float64 { return float64(Draw(key, n)>>11) * 0x1p-53 }

// DrawBelow returns the n-th number of key in [0, limit); limit must not be 0. The bias is below limit/2⁶⁴.
func DrawBelow(key, n, limit uint64) uint64 {
	high, _ := bits.Mul64(Draw(key, n), limit)
	return high
}

// Key derives a new key from a key and a number, for one purpose or one member of a family.
func Key(key, number uint64) uint64 { return mix64(mix64(key^0x6a09e667f3bcc909) + number*goldenGamma) }

// KeyOf derives a new key from a key and a text.
func KeyOf(key uint64, text string) uint64 {
	key = Key(key, uint64(len(text)))
	for len(text) > 0 {
		var word uint64
		count := min(8, len(text))
		for i := range count {
			word |= uint64(text[i]) << (8 * i)
		}
		key, text = Key(key, word), text[count:]
	}
	return key
}

func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
