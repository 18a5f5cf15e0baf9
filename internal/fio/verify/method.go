package verify

import "strings"

// Method is the method with which intervals are checked. The numbers are those of fio's headers.
type Method uint16

// Methods. Meta has a header without a digest.
const (
	Meta     Method = 1
	MD5      Method = 2
	CRC64    Method = 3
	CRC32    Method = 4
	CRC32C   Method = 5
	CRC16    Method = 7
	CRC7     Method = 8
	SHA256   Method = 9
	SHA512   Method = 10
	SHA3_224 Method = 11
	SHA3_256 Method = 12
	SHA3_384 Method = 13
	SHA3_512 Method = 14
	XXHash   Method = 15
	SHA1     Method = 16
	// PatternHeader has a header without a digest, and compares every byte after it with a pattern; added after fio 3.33.
	PatternHeader Method = 17

	// These are never in a header.
	ByPattern Method = 1 << 15 // compares every byte with a pattern
	Null      Method = 1<<15 + 1
)

// methods have a name in job files and the length of the digest after the header.
var methods = map[Method]struct {
	name   string
	digest int
}{
	Meta: {"meta", 0}, MD5: {"md5", 16}, CRC64: {"crc64", 8}, CRC32: {"crc32", 4}, CRC32C: {"crc32c", 4}, CRC16: {"crc16", 2},
	CRC7: {"crc7", 1}, SHA1: {"sha1", 20}, SHA256: {"sha256", 64}, SHA512: {"sha512", 128}, SHA3_224: {"sha3-224", 28},
	SHA3_256: {"sha3-256", 32}, SHA3_384: {"sha3-384", 48}, SHA3_512: {"sha3-512", 64}, XXHash: {"xxhash", 4},
	ByPattern: {"pattern", 0}, PatternHeader: {"pattern_hdr", 0}, Null: {"null", 0},
}

const digestMax = 128

// MethodOf finds a method by its name in job files.
func MethodOf(name string) (Method, bool) {
	name = strings.TrimSuffix(name, "-intel") // crc32c-intel selects the processor's instruction in fio, which is always used here
	for m, is := range methods {
		if is.name == name {
			return m, true
		}
	}
	return 0, false
}

func (m Method) name() string     { return methods[m].name }
func (m Method) digestBytes() int { return methods[m].digest }
func (m Method) hasHeader() bool  { return m < ByPattern }

// String is the name in job files.
func (m Method) String() string {
	if name := m.name(); name != "" {
		return name
	}
	return "unknown"
}

// Covers reports whether the digest depends on every byte after it. The digest that fio 3.33 stores as sha512 does not: it
// is the last bytes of the interval and a part of its first 128, because the last step of the computation is missing.
func (m Method) Covers() bool { return m != Meta && m != SHA512 && m != Null }
