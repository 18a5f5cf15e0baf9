package verify

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"encoding"
	"encoding/binary"
	"hash"
)

// digester computes the bytes that fio stores after a header, which do not always match the method's name. Observed on fio
// 3.33:
//
//	crc32c    without the inversion at the end
//	crc32     polynomial 04c11db7, highest bit first, from 0 on, without inversion
//	crc64     polynomial ad93d23594c935a9, lowest bit first, from 0 on
//	crc16     polynomial 8005, lowest bit first, from 0 on
//	crc7      polynomial 09, highest bit first, from 0 on
//	sha1      five words, each little-endian
//	sha256    the last block after padding, its length little-endian; the first eight bytes are the lowest of each word of
//	          the state after it
//	sha512    the last block's data, and behind it what the first block had there; no digest at all
//	xxhash    XXH32 with seed 1
//
// Numbers are little-endian; md5 and sha3 are the usual bytes.
type digester struct {
	method  Method
	hash    hash.Hash // md5, sha1, sha256
	sha3    *sha3.SHA3
	buffer  [256]byte
	padding [128]byte // of sha256
}

func (d *digester) prepare(m Method) {
	d.method = m
	switch m {
	case MD5:
		d.hash = md5.New()
	case SHA1:
		d.hash = sha1.New()
	case SHA256:
		d.hash = sha256.New()
	case SHA3_224:
		d.sha3 = sha3.New224()
	case SHA3_256:
		d.sha3 = sha3.New256()
	case SHA3_384:
		d.sha3 = sha3.New384()
	case SHA3_512:
		d.sha3 = sha3.New512()
	case CRC16, CRC64, CRC32, CRC7:
		tablesOf(m)
	}
}

// sum writes the digest of data to to, which has the length of the method.
func (d *digester) sum(to, data []byte) {
	le := binary.LittleEndian
	switch d.method {
	case CRC32C:
		le.PutUint32(to, crc32c(data))
	case CRC16:
		le.PutUint16(to, uint16(lowestFirst(tablesOf(CRC16), data)))
	case CRC64:
		le.PutUint64(to, lowestFirst(tablesOf(CRC64), data))
	case CRC32:
		le.PutUint32(to, uint32(highestFirst(tablesOf(CRC32), data)>>32))
	case CRC7:
		to[0] = byte(highestFirst(tablesOf(CRC7), data) >> 57)
	case XXHash:
		le.PutUint32(to, xxh32(data, 1))
	case MD5:
		copy(to, d.hashed(data))
	case SHA1:
		words := d.hashed(data)
		for i := 0; i < len(words); i += 4 {
			le.PutUint32(to[i:], binary.BigEndian.Uint32(words[i:]))
		}
	case SHA256:
		d.sha256(to, data)
	case SHA512:
		sha512(to, data)
	case SHA3_224, SHA3_256, SHA3_384, SHA3_512:
		d.sha3.Reset()
		_, _ = d.sha3.Write(data) // a hash never fails
		copy(to, d.sha3.Sum(d.buffer[:0]))
	}
}

func (d *digester) hashed(data []byte) []byte {
	d.hash.Reset()
	_, _ = d.hash.Write(data)
	return d.hash.Sum(d.buffer[:0])
}

// sha256 pads by itself, because the length in the padding has the wrong byte order, and reads the resulting state.
func (d *digester) sha256(to, data []byte) {
	const block = 64
	d.hash.Reset()
	_, _ = d.hash.Write(data)
	padding := d.padding[:]
	clear(padding)
	n := copy(padding, data[len(data)/block*block:])
	padding[n] = 0x80
	end := block
	if n >= block-8 {
		end = 2 * block
	}
	binary.LittleEndian.PutUint64(padding[end-8:], uint64(len(data))*8)
	_, _ = d.hash.Write(padding[n:end])
	copy(to, padding[end-block:end])
	state, err := d.hash.(encoding.BinaryAppender).AppendBinary(d.buffer[:0])
	if err != nil || len(state) < 4+32 {
		return // never: the standard library documents that the state of its hashes can be saved
	}
	for i := range 8 {
		to[i] = state[4+4*i+3] // after a mark of four bytes; words are big-endian
	}
}

// sha512 is not a real digest: see digester.
func sha512(to, data []byte) {
	const block = 128
	clear(to)
	if len(data) >= block {
		copy(to, data[:block])
	}
	copy(to, data[len(data)/block*block:])
}
