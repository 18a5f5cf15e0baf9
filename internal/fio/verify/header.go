package verify

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Header precedes a digest, little-endian:
//
//	 0  magic 0xacca         2 bytes
//	 2  method               2
//	 4  length of interval   4
//	 8  seed of the content  8
//	16  offset in the file   8
//	24  time                 4 seconds, 4 nanoseconds
//	32  thread               2
//	34  number of the write  2
//	36  CRC-32C of all that  4
//
// fio puts the time of the write into its two fields and never looks at them. Here they hold the full number of the write,
// so that written content stays a function of seed, stream and number.
type Header struct {
	Magic   uint16
	Method  Method
	Length  uint32
	Seed    uint64
	Offset  uint64
	Seconds uint32
	Nanos   uint32
	Thread  uint16
	Number  uint16
	Check   uint32
	valid   bool // the CRC matches
}

const (
	magic       = 0xacca
	headerBytes = 40
	checkedPart = 36
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc32c is CRC-32C without the inversion at the end.
func crc32c(data []byte) uint32 { return ^crc32.Checksum(data, castagnoli) }

func putHeader(to []byte, method Method, offset int64, s Stamp) {
	le := binary.LittleEndian
	le.PutUint16(to[0:], magic)
	le.PutUint16(to[2:], uint16(method))
	le.PutUint32(to[4:], uint32(len(to)))
	le.PutUint64(to[8:], s.Seed)
	le.PutUint64(to[16:], uint64(offset))
	le.PutUint32(to[24:], uint32(s.Number>>32))
	le.PutUint32(to[28:], uint32(s.Number))
	le.PutUint16(to[32:], s.Thread)
	le.PutUint16(to[34:], uint16(s.Number))
	le.PutUint32(to[36:], crc32c(to[:checkedPart]))
}

// FullNumber is the number of the write in a header that was written here.
func (h *Header) FullNumber() uint64 { return uint64(h.Seconds)<<32 | uint64(h.Nanos) }

// Marked reports whether there seems to be a header: its magic is right.
func (h *Header) Marked() bool { return h.Magic == magic }

// Valid reports whether there is an undamaged header, for any content.
func (h *Header) Valid() bool { return h.Marked() && h.valid }

// ReadHeader returns the header at an offset of an interval; an interval that is too short has none.
func ReadHeader(interval []byte, at int64) Header {
	if at < 0 || int64(len(interval)) < at+headerBytes {
		return Header{}
	}
	return readHeader(interval[at:])
}

// readHeader decodes a header; from has at least its length.
func readHeader(from []byte) Header {
	le := binary.LittleEndian
	h := Header{
		Magic: le.Uint16(from[0:]), Method: Method(le.Uint16(from[2:])), Length: le.Uint32(from[4:]), Seed: le.Uint64(from[8:]),
		Offset: le.Uint64(from[16:]), Seconds: le.Uint32(from[24:]), Nanos: le.Uint32(from[28:]), Thread: le.Uint16(from[32:]),
		Number: le.Uint16(from[34:]), Check: le.Uint32(from[36:]),
	}
	h.valid = crc32c(from[:checkedPart]) == h.Check
	return h
}

// fault returns why h is not the header of an interval at an offset; "" if it is.
func (h *Header) fault(length, offset int64) string {
	switch {
	case h.Magic != magic:
		return fmt.Sprintf("no header: the magic is %04x, and should be %04x", h.Magic, magic)
	case int64(h.Length) != length:
		if h.valid {
			return fmt.Sprintf("the header is of an interval of %d bytes; verify_interval=%d would fit", h.Length, h.Length)
		}
		return fmt.Sprintf("the header is of %d bytes, and should be of %d", h.Length, length)
	case h.Offset != uint64(offset):
		return fmt.Sprintf("the header belongs to offset %d", h.Offset)
	case !h.valid:
		return fmt.Sprintf("the header is damaged: its check is %08x", h.Check)
	}
	return ""
}

// foreign returns why the header is not that of the expected write, "" if it is.
func (h *Header) foreign(want *Stamp, strict Strict, patterned bool) string {
	seed := want.Seed
	if patterned {
		seed = 0
	}
	switch {
	case strict.Seed && h.Seed != seed:
		return fmt.Sprintf("another write is there: seed %016x and number %d, and it should be %016x and %d", h.Seed, h.Number, seed,
			uint16(want.Number))
	case strict.Number && h.Number != uint16(want.Number):
		return fmt.Sprintf("another write is there: number %d, and it should be %d", h.Number, uint16(want.Number))
	}
	return ""
}
