package verify

import (
	"bytes"
	"encoding/binary"
)

// Pattern fills a block repeatedly from its start. The eight bytes at each of Offsets hold the offset of the block,
// little-endian: %o in fio. With an Interval it restarts every Interval bytes of the block, with the offset of that place.
type Pattern struct {
	Bytes    []byte
	Offsets  []int
	Interval int64
}

// Fill fills block, which is written at offset.
func (p *Pattern) Fill(block []byte, offset int64) {
	step := p.Interval
	if step <= 0 {
		step = int64(len(block))
	}
	for at := int64(0); at < int64(len(block)); at += step {
		p.fill(block[at:min(at+step, int64(len(block)))], offset+at)
	}
}

// fill fills a part without restarts.
func (p *Pattern) fill(block []byte, offset int64) {
	n := copy(block, p.Bytes)
	var field [8]byte
	binary.LittleEndian.PutUint64(field[:], uint64(offset))
	for _, at := range p.Offsets {
		if at < n {
			copy(block[at:n], field[:])
		}
	}
	for filled := n; filled < len(block) && n > 0; {
		filled += copy(block[filled:], block[:filled])
	}
}

// at returns the byte at a position of a block that is written at offset.
func (p *Pattern) at(offset, position int64) byte {
	if p.Interval > 0 {
		offset, position = offset+position-position%p.Interval, position%p.Interval
	}
	i := int(position % int64(len(p.Bytes)))
	for _, at := range p.Offsets {
		if i >= at && i < at+8 {
			return byte(uint64(offset) >> (8 * (i - at)))
		}
	}
	return p.Bytes[i]
}

// differ returns the first byte of interval that differs from the pattern, -1 for none.
func (p *Pattern) differ(interval []byte, at Place) int {
	if p.Interval <= 0 {
		return p.differIn(interval, at)
	}
	for from := 0; from < len(interval); {
		place := Place{Block: at.Block, Position: at.Position + int64(from)}
		to := int(min(int64(len(interval)), int64(from)+p.Interval-place.Position%p.Interval))
		if bad := p.differIn(interval[from:to], place); bad >= 0 {
			return from + bad
		}
		from = to
	}
	return -1
}

// differIn is differ for a part without restarts. Repetitions are compared with the data itself, one pattern length further
// on.
func (p *Pattern) differIn(interval []byte, at Place) int {
	n := min(len(p.Bytes), len(interval))
	for i := range n {
		if interval[i] != p.at(at.Block, at.Position+int64(i)) {
			return i
		}
	}
	if bytes.Equal(interval[n:], interval[:len(interval)-n]) {
		return -1
	}
	for i := n; ; i++ {
		if interval[i] != interval[i-n] {
			return i
		}
	}
}
