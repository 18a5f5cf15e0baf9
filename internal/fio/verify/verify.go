// Package verify stamps written blocks so that a reader can detect corrupt, stale or misplaced blocks. The bytes are those
// that fio 3.33 writes, so that either tool can verify data of the other.
//
//	Format ──New──▶ Codec ──Stamp──▶ a block with headers ──disk──▶ Codec.Check ──▶ nil, or a Mismatch
//
// A block consists of intervals. Each begins with a header (header.go), followed by the digest of the content (digest.go)
// and the content, which is only checked through the digest. With a header offset, the first bytes of the interval are
// swapped with those at the offset. Method pattern has neither: it compares every byte (pattern.go).
//
// The layout was determined from data that fio wrote, and tests compare both. The package does not depend on files, jobs or
// schedules.
package verify

import (
	"bytes"
	"errors"
	"fmt"
)

// Format defines how blocks are stamped. It must not change once a Codec was made from it.
type Format struct {
	Method Method
	// Interval is the distance of headers in bytes; see Codec.Step.
	Interval int64
	// HeaderOffset is the position of a header in its interval: 0, or at least the length of a header with its digest.
	HeaderOffset int64
	// Pattern fills blocks before they are stamped; if it is empty, their content stays.
	Pattern Pattern
}

// Stamp has the variable fields of a header.
type Stamp struct {
	Seed   uint64 // of the content
	Number uint64 // of the write
	Thread uint16 // of the writer, from 1
}

// Validate returns an error if the format cannot be written.
func (f *Format) Validate() error {
	switch size := f.HeaderBytes(); {
	case f.Method.name() == "":
		return fmt.Errorf("verification method %d does not exist", f.Method)
	case (f.Method == ByPattern || f.Method == PatternHeader) && len(f.Pattern.Bytes) == 0:
		return errors.New("verification by pattern needs a pattern")
	case size == 0:
		return nil
	case f.Interval < size:
		return fmt.Errorf("an interval of %d bytes does not hold a header and the digest of %v, which have %d", f.Interval, f.Method, size)
	case f.HeaderOffset != 0 && f.HeaderOffset < size:
		return fmt.Errorf("a header at %d overlaps the %d bytes that it changes places with", f.HeaderOffset, size)
	case f.HeaderOffset+size > f.Interval:
		return fmt.Errorf("a header at %d with %d bytes goes beyond its interval of %d", f.HeaderOffset, size, f.Interval)
	}
	return nil
}

// HeaderBytes is the length of header and digest in an interval.
func (f *Format) HeaderBytes() int64 {
	if !f.Method.hasHeader() {
		return 0
	}
	return headerBytes + int64(f.Method.digestBytes())
}

// Codec stamps and checks blocks without allocating. Only one goroutine at a time may use it.
type Codec struct {
	format Format
	digest digester
	want   [digestMax]byte // the expected digest
}

// New returns the codec of a valid format.
func New(f Format) *Codec {
	c := &Codec{format: f}
	c.digest.prepare(f.Method)
	return c
}

// Format returns the format of the codec.
func (c *Codec) Format() *Format { return &c.format }

// Step returns the distance of headers in a block of n bytes, or the length of one check if there are none.
func (c *Codec) Step(n int64) int64 {
	if c.format.Interval <= 0 || c.format.Interval > n || !c.format.Method.hasHeader() {
		return n
	}
	return c.format.Interval
}

// Stamp stamps a block with existing content for writing at an offset of a file.
func (c *Codec) Stamp(block []byte, offset int64, s Stamp) {
	if len(c.format.Pattern.Bytes) > 0 {
		c.format.Pattern.Fill(block, offset)
		s.Seed = 0
	}
	if !c.format.Method.hasHeader() {
		return
	}
	step := c.Step(int64(len(block)))
	for at := int64(0); at+step <= int64(len(block)); at += step {
		interval := block[at : at+step]
		content := headerBytes + c.format.Method.digestBytes()
		c.digest.sum(interval[headerBytes:content], interval[content:])
		putHeader(interval, c.format.Method, offset+at, s)
		c.exchange(interval)
	}
}

// exchange swaps the header with the bytes at its offset.
func (c *Codec) exchange(interval []byte) {
	if c.format.HeaderOffset == 0 {
		return
	}
	size := c.format.HeaderBytes()
	var held [headerBytes + digestMax]byte
	front, there := interval[:size], interval[c.format.HeaderOffset:][:size]
	copy(held[:], front)
	copy(front, there)
	copy(there, held[:size])
}

// Place is the place in a file of the checked bytes.
type Place struct {
	Block    int64 // offset of the operation
	Position int64 // of the interval in the operation
}

// Check checks whether interval, read at a place, holds what was written there: it returns nil, or the mismatch. Want, if
// it is not nil, has the expected header fields; Strict selects which of them must match.
func (c *Codec) Check(interval []byte, at Place, want *Stamp, strict Strict) *Mismatch {
	switch {
	case c.format.Method == Null:
		return nil
	case !c.format.Method.hasHeader():
		return c.checkPattern(interval, at)
	}
	c.exchange(interval)
	m := c.checkHeader(interval, at, want, strict)
	c.exchange(interval) // a dump shows the interval as it was read
	return m
}

// Strict selects fields of a Stamp that must match.
type Strict struct {
	Seed   bool
	Number bool
}

func (c *Codec) checkHeader(interval []byte, at Place, want *Stamp, strict Strict) *Mismatch {
	offset := at.Block + at.Position
	h := readHeader(interval)
	fault := h.fault(int64(len(interval)), offset)
	if fault == "" && want != nil {
		fault = h.foreign(want, strict, len(c.format.Pattern.Bytes) > 0)
	}
	if fault == "" {
		fault = c.digestFault(interval, &h)
	}
	if fault == "" && c.format.Method == PatternHeader {
		body := Place{Block: at.Block, Position: at.Position + headerBytes}
		if m := c.checkPattern(interval[headerBytes:], body); m != nil {
			fault = m.Fault
		}
	}
	if fault == "" {
		return nil
	}
	stored := interval[headerBytes : headerBytes+c.format.Method.digestBytes()]
	return &Mismatch{Offset: offset, Length: int64(len(interval)), Place: at, Header: h, Digest: bytes.Clone(stored), Fault: fault}
}

// digestFault compares the computed digest of an interval with the stored one.
func (c *Codec) digestFault(interval []byte, h *Header) string {
	n := c.format.Method.digestBytes()
	stored, content := interval[headerBytes:headerBytes+n], interval[headerBytes+n:]
	if n == 0 {
		return ""
	}
	c.digest.sum(c.want[:n], content)
	switch {
	case bytes.Equal(c.want[:n], stored):
		return ""
	case h.Method != c.format.Method && h.Method.name() != "":
		return fmt.Sprintf("written with verify=%v, but the job has verify=%v", h.Method, c.format.Method)
	}
	return fmt.Sprintf("its %v is %x, and the header says %x", c.format.Method, c.shown(c.want[:]), c.shown(stored))
}

// SameDigest reports whether an intact interval has a digest that equals the given one.
func (c *Codec) SameDigest(interval, digest []byte) bool {
	at := c.format.HeaderOffset + headerBytes
	return len(digest) > 0 && int64(len(interval)) >= at+int64(len(digest)) && bytes.Equal(interval[at:at+int64(len(digest))], digest)
}

// shown returns the significant part of a digest for messages.
func (c *Codec) shown(digest []byte) []byte {
	n := c.format.Method.digestBytes()
	if c.format.Method == SHA256 || c.format.Method == SHA512 {
		n = 32
	}
	return digest[:n]
}

// Mismatch is an interval that does not hold what was written.
type Mismatch struct {
	Offset, Length int64 // of the interval, in the file
	Place          Place
	Fault          string // "its crc32c is 1c291ca3, and the header says …"
	Header         Header // as it was read; empty for patterns
	Digest         []byte // as it was read, if there is one
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%d bytes at offset %d are not what was written: %s", m.Length, m.Offset, m.Fault)
}

func (c *Codec) checkPattern(interval []byte, at Place) *Mismatch {
	bad := c.format.Pattern.differ(interval, at)
	if bad < 0 {
		return nil
	}
	return &Mismatch{
		Offset: at.Block + at.Position, Length: int64(len(interval)), Place: at,
		Fault: fmt.Sprintf("byte %d is %02x, and the pattern has %02x there", at.Block+at.Position+int64(bad),
			interval[bad], c.format.Pattern.at(at.Block, at.Position+int64(bad))),
	}
}
