// Package verify stamps written blocks so that a reader can detect blocks that are corrupt, stale or misplaced. The bytes
// are those that fio 3.33 writes, so that either tool checks what the other wrote.
//
//	Format ──New──▶ Codec ──Stamp──▶ a block with headers ──disk──▶ Codec.Check ──▶ nil, or a Mismatch
//
// A block consists of intervals. Each begins with a header (header.go), followed by the digest of the content (digest.go)
// and the content, which is checked through the digest only. With a header offset the first bytes of the interval and those
// at the offset have changed places. Method pattern has neither: every byte is compared (pattern.go).
//
// The layout was learnt by writing with fio and reading the bytes, and tests compare both. It knows nothing of files,
// jobs or schedules.
package verify

import (
	"bytes"
	"errors"
	"fmt"
)

// Format says how blocks are stamped. It never changes once a Codec was made of it.
type Format struct {
	Method Method
	// Interval is the distance of headers in bytes; see Codec.Step.
	Interval int64
	// HeaderOffset is the position of a header in its interval: 0, or at least as much as a header with its digest has.
	HeaderOffset int64
	// Pattern fills blocks in front of the header; empty leaves them as they are.
	Pattern Pattern
}

// Stamp is what a header says of a block besides its checks.
type Stamp struct {
	Seed   uint64 // of the content
	Number uint64 // of the write
	Thread uint16 // of the writer, from 1
}

// Validate reports a format that cannot be written.
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

// HeaderBytes is how many bytes of an interval are header and digest.
func (f *Format) HeaderBytes() int64 {
	if !f.Method.hasHeader() {
		return 0
	}
	return headerBytes + int64(f.Method.digestBytes())
}

// Codec stamps and checks blocks without allocating. One goroutine uses it at a time.
type Codec struct {
	format Format
	digest digester
	want   [digestMax]byte // what a digest should be
}

// New returns the codec of a format that is valid.
func New(f Format) *Codec {
	c := &Codec{format: f}
	c.digest.prepare(f.Method)
	return c
}

// Format returns what the codec was made of.
func (c *Codec) Format() *Format { return &c.format }

// Step returns the distance of headers in a block of n bytes, or how much is checked at a time where there are none.
func (c *Codec) Step(n int64) int64 {
	if c.format.Interval <= 0 || c.format.Interval > n || !c.format.Method.hasHeader() {
		return n
	}
	return c.format.Interval
}

// Stamp makes block, whose content is there already, what is written at offset of a file.
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

// exchange lets the header and the bytes at its offset change places.
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

// Place says where in a file the bytes are that are checked.
type Place struct {
	Block    int64 // offset of the operation
	Position int64 // of the interval in the operation
}

// Check reports whether interval, read at a place, is what was written there: nil, or what is wrong. Want, if it is not
// nil, is what the header has to say; Strict says of what.
func (c *Codec) Check(interval []byte, at Place, want *Stamp, strict Strict) *Mismatch {
	switch {
	case c.format.Method == Null:
		return nil
	case !c.format.Method.hasHeader():
		return c.checkPattern(interval, at)
	}
	c.exchange(interval)
	m := c.checkHeader(interval, at, want, strict)
	c.exchange(interval) // a dump shows what was read
	return m
}

// Strict says which parts of a Stamp count.
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

// digestFault compares the digest of an interval with the one that it has.
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

// SameDigest reports whether an interval that is as it was written has a digest, and it is the given one.
func (c *Codec) SameDigest(interval, digest []byte) bool {
	at := c.format.HeaderOffset + headerBytes
	return len(digest) > 0 && int64(len(interval)) >= at+int64(len(digest)) && bytes.Equal(interval[at:at+int64(len(digest))], digest)
}

// shown is the part of a digest that is worth printing.
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
	Digest         []byte // the one that was read, where there is one
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
