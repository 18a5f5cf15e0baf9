package verifying

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// original makes again what writes of a lane held.
type original struct {
	spec   *program.Verification
	codec  *verify.Codec
	thread uint16 // in headers
	block  []byte // of one operation, once it was needed
}

func (o *original) stampOf(s *pattern.Stream, number uint64) verify.Stamp {
	return verify.Stamp{Seed: load.Draw(s.ContentKey, number), Number: number, Thread: o.thread}
}

// regenerate makes what the write of an operation held.
func (o *original) regenerate(l *queue.Queue, s *backend.Slot) []byte {
	if o.block == nil {
		o.block = make([]byte, l.Job.BufferBytes())
	}
	block := o.block[:s.Size]
	stream := &l.Streams[s.Stream]
	l.Job.Content.Write(block, content.Pool(), stream.ContentKey, s.Number)
	o.codec.Stamp(block, s.Offset, o.stampOf(stream, s.Number))
	return block
}

// compare looks at every byte, where the digest does not depend on all of them.
func (o *original) compare(l *queue.Queue, s *backend.Slot, at int64, part []byte) *verify.Mismatch {
	expected := o.regenerate(l, s)[at : at+int64(len(part))]
	if bytes.Equal(expected, part) {
		return nil
	}
	first := 0
	for expected[first] == part[first] {
		first++
	}
	return &verify.Mismatch{
		Offset: s.Offset + at, Length: int64(len(part)), Place: verify.Place{Block: s.Offset, Position: at},
		Header: verify.ReadHeader(part, o.spec.Format.HeaderOffset),
		Fault:  fmt.Sprintf("byte %d is %02x, and %02x was written", s.Offset+at+int64(first), part[first], expected[first]),
	}
}

// expect returns what an interval should hold, nil when that cannot be known: another tool wrote it.
func (o *original) expect(l *queue.Queue, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) []byte {
	from, to := m.Place.Position, m.Place.Position+m.Length
	switch f := &o.spec.Format; {
	case want != nil && (!o.spec.Only || m.Header.Seed == want.Seed):
		return o.regenerate(l, s)[from:to]
	case f.Method == verify.ByPattern:
		block := make([]byte, s.Size)
		f.Pattern.Fill(block, s.Offset)
		return block[from:to]
	case f.HeaderBytes() > 0 && len(f.Pattern.Bytes) == 0:
		return o.reconstruct(l, m)
	}
	return nil
}

// positionsTried is how many intervals of one write may stand before the one that is reconstructed.
const positionsTried = 64

// reconstruct makes an interval again from its header alone: the seed says what the write held, unless its job shaped its
// data, and the digest tells which of the write's intervals it was. It returns nil where none fits, as with what fio wrote.
func (o *original) reconstruct(l *queue.Queue, m *verify.Mismatch) []byte {
	h := &m.Header
	block := make([]byte, 0, positionsTried*m.Length)
	for n := int64(1); n <= positionsTried && n*m.Length <= l.Job.BufferBytes()*positionsTried && m.Offset >= (n-1)*m.Length; n++ {
		block = block[:n*m.Length]
		content.Fill(block, h.Seed)
		o.codec.Stamp(block, m.Offset-(n-1)*m.Length, verify.Stamp{Seed: h.Seed, Number: h.FullNumber(), Thread: h.Thread})
		if interval := block[(n-1)*m.Length:]; o.codec.SameDigest(interval, m.Digest) {
			return interval
		}
	}
	return nil
}

// describe is one line about one wrong interval.
func (o *original) describe(name string, m *verify.Mismatch, want *verify.Stamp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "file %q, offset %d: %d bytes are not what was written there: %s", name, m.Offset, m.Length, m.Fault)
	if o.spec.Format.HeaderBytes() == 0 {
		return b.String()
	}
	h := &m.Header
	fmt.Fprintf(&b, "; found magic %04x, length %d, offset %d, seed %016x, number %d, thread %d", h.Magic, h.Length, h.Offset, h.Seed, h.Number, h.Thread)
	fmt.Fprintf(&b, "; expected magic acca, length %d, offset %d", m.Length, m.Offset)
	if want != nil && o.spec.Strict.Seed {
		seed := want.Seed
		if len(o.spec.Format.Pattern.Bytes) > 0 {
			seed = 0
		}
		fmt.Fprintf(&b, ", seed %016x, number %d", seed, uint16(want.Number))
	}
	return b.String()
}
