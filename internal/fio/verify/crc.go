package verify

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// The standard library has no CRC with the highest bit first, and its 64-bit CRCs invert and are slow for other
// polynomials. These process eight bytes at a time with one table each (Kounavis, Berry: Novel Table Lookup-Based
// Algorithms for High-Performance CRC Generation, 2008). Any width up to 64 bits is possible: with the lowest bit first,
// the register is at the lower end of 64 bits, otherwise at the upper one.
type crcTables [8][256]uint64

var (
	crc16Tables = sync.OnceValue(func() *crcTables { return lowestFirstTables(uint64(bits.Reverse16(0x8005))) })
	crc64Tables = sync.OnceValue(func() *crcTables { return lowestFirstTables(bits.Reverse64(0xad93d23594c935a9)) })
	crc32Tables = sync.OnceValue(func() *crcTables { return highestFirstTables(0x04c11db7 << 32) })
	crc7Tables  = sync.OnceValue(func() *crcTables { return highestFirstTables(0x09 << 57) })
)

func tablesOf(m Method) *crcTables {
	switch m {
	case CRC16:
		return crc16Tables()
	case CRC64:
		return crc64Tables()
	case CRC32:
		return crc32Tables()
	}
	return crc7Tables()
}

func lowestFirstTables(polynomial uint64) *crcTables {
	t := &crcTables{}
	for i := range t[0] {
		v := uint64(i)
		for range 8 {
			if v&1 != 0 {
				v = v>>1 ^ polynomial
			} else {
				v >>= 1
			}
		}
		t[0][i] = v
	}
	for k := 1; k < len(t); k++ {
		for i, v := range t[k-1] {
			t[k][i] = v>>8 ^ t[0][byte(v)]
		}
	}
	return t
}

func highestFirstTables(polynomial uint64) *crcTables {
	t := &crcTables{}
	for i := range t[0] {
		v := uint64(i) << 56
		for range 8 {
			if v>>63 != 0 {
				v = v<<1 ^ polynomial
			} else {
				v <<= 1
			}
		}
		t[0][i] = v
	}
	for k := 1; k < len(t); k++ {
		for i, v := range t[k-1] {
			t[k][i] = v<<8 ^ t[0][v>>56]
		}
	}
	return t
}

func lowestFirst(t *crcTables, data []byte) uint64 {
	var v uint64
	for ; len(data) >= 8; data = data[8:] {
		v ^= binary.LittleEndian.Uint64(data)
		v = t[7][byte(v)] ^ t[6][byte(v>>8)] ^ t[5][byte(v>>16)] ^ t[4][byte(v>>24)] ^
			t[3][byte(v>>32)] ^ t[2][byte(v>>40)] ^ t[1][byte(v>>48)] ^ t[0][byte(v>>56)]
	}
	for _, b := range data {
		v = v>>8 ^ t[0][byte(v)^b]
	}
	return v
}

func highestFirst(t *crcTables, data []byte) uint64 {
	var v uint64
	for ; len(data) >= 8; data = data[8:] {
		v ^= binary.BigEndian.Uint64(data)
		v = t[7][byte(v>>56)] ^ t[6][byte(v>>48)] ^ t[5][byte(v>>40)] ^ t[4][byte(v>>32)] ^
			t[3][byte(v>>24)] ^ t[2][byte(v>>16)] ^ t[1][byte(v>>8)] ^ t[0][byte(v)]
	}
	for _, b := range data {
		v = v<<8 ^ t[0][byte(v>>56)^b]
	}
	return v
}
