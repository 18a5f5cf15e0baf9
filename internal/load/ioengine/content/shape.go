package content

import (
	"fmt"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// Content is what the writes of a job hold. What write n of a stream holds is a function of the stream's content key and
// n alone, so that it can be made again to check what was stored. It never changes and is shared by all clones.
//
// As in fio a pattern wins over everything, unless only a part of each chunk is to compress: then it is that part. A
// share that compresses or repeats wins over zero_buffers. refill_buffers and scramble_buffers have no effect, because
// no write repeats another unless that was requested.
type Content struct {
	kind    kind
	percent int    // of each chunk that is filler: zeros, or the pattern
	chunk   int    // bytes; 0: as long as the block
	repeats uint64 // percent of the blocks that repeat another one
	block   int    // bytes that are unique or repeated as a whole: the smallest write
	apart   uint64 // hundreds of writes between a block and its repeat
	pattern []byte
	// setBlocks above 0: repeats are drawn from so many blocks, the first unique ones of the stream. setShared: from blocks
	// that are the same for all jobs.
	setBlocks uint64
	setShared bool
}

type kind uint8

const (
	random kind = iota
	zeros
	onePattern
)

// Of is what the writes of a job hold whose smallest one has block bytes.
func Of(j *fiojob.Job, block int64) Content {
	c := Content{
		percent: j.Content.CompressPercent, chunk: int(j.Content.CompressChunkBytes), pattern: j.Content.Pattern,
		repeats: uint64(j.Content.DedupePercent), block: int(block),
	}
	c.apart = uint64((windowMax + repeatGroup*c.block - 1) / (repeatGroup * c.block))
	switch {
	case c.percent > 0:
	case len(c.pattern) > 0:
		c.kind = onePattern
	case c.repeats == 0 && j.ZeroBuffers:
		c.kind = zeros
	}
	return c
}

// Write makes what write n of the stream with this content key holds. All of buffer is written each time, because the
// reads of the same clone use it too.
func (c *Content) Write(buffer, pool []byte, key, n uint64) {
	switch {
	case c.kind != random:
		c.filler(buffer)
	case c.repeats == 0:
		c.fill(buffer, pool, load.Draw(key, n))
	default:
		for i := uint64(0); len(buffer) > 0; i++ {
			count := min(len(buffer), c.block)
			c.fill(buffer[:count], pool, c.blockKey(key, n, i))
			buffer = buffer[count:]
		}
	}
}

// runCost is about what a compressor needs to say where filler is and how long: 2 to 5 bytes in LZ4, zstd and DEFLATE. So
// much more of a chunk is filler, so that what the medium stores has the requested size and not 1 or 2 % more.
const runCost = 3

// fill makes one block: in each chunk random bytes and behind them filler.
func (c *Content) fill(buffer, pool []byte, key uint64) {
	if c.percent == 0 {
		fillRandom(buffer, pool, key)
		return
	}
	chunk := c.chunk
	if chunk == 0 {
		chunk = len(buffer)
	}
	for i := uint64(0); len(buffer) > 0; i++ {
		count := min(len(buffer), chunk)
		random := max(0, count-(count*c.percent+50)/100-runCost)
		fillRandom(buffer[:random], pool, load.Draw(key, i))
		c.filler(buffer[random:count])
		buffer = buffer[count:]
	}
}

func (c *Content) filler(buffer []byte) {
	if len(c.pattern) == 0 {
		clear(buffer)
		return
	}
	for filled := copy(buffer, c.pattern); filled < len(buffer); {
		filled += copy(buffer[filled:], buffer[:filled])
	}
}

// Of each hundred writes in a row exactly the asked number repeat, so that the share holds in small files too. A write
// has a place in its hundred: its number times repeatStep, so that repeats lie evenly between the others, plus a random
// phase. The first places are unique. A repeat holds what any of the unique writes of the hundreds before holds, all
// with the same probability; in the first hundred that is one of the same hundred. Some hundreds lie between, so that
// of what is written in order no window of a compressor holds both: it would compress better than requested.
//
// Writes that are larger than the smallest consist of several blocks. Each has phases of its own and repeats the first
// block of a write, because a smaller write has no other.
const (
	repeatGroup   = 100
	repeatStep    = 61
	repeatInverse = 41 // repeatStep·repeatInverse = 1 modulo repeatGroup
	windowMax     = 1 << 20
)

// The keys below that of a content; the others are in package pattern.
const (
	keyRepeat       = 1 << 40 // of a content, next to the blocks of a write
	keyRepeatSource = 1       // of a repeat
	keySharedSet    = 5 << 40 // in place of a content: the working set that jobs share
)

// blockKey returns the key of what block i of write n holds.
func (c *Content) blockKey(key, n, i uint64) uint64 {
	unique := repeatGroup - c.repeats
	if unique == 0 && c.setBlocks == 0 {
		return load.Draw(key, 0)
	}
	repeatKey := load.Key(key, keyRepeat)
	own := load.Key(repeatKey, i)
	group := n / repeatGroup
	phase := load.DrawBelow(own, group, repeatGroup)
	if (n*repeatStep+phase)%repeatGroup < unique {
		if i > 0 {
			key = load.Key(key, i)
		}
		return load.Draw(key, n)
	}
	source := load.Key(own, keyRepeatSource)
	if c.setBlocks > 0 && (c.setShared || unique == 0) {
		return load.Draw(keySharedSet, load.DrawBelow(source, n, c.setBlocks))
	}
	groups := max(1, group-min(group, c.apart))
	if c.setBlocks > 0 {
		groups = (c.setBlocks + unique - 1) / unique // the first unique writes of the stream are the set
	}
	from := load.DrawBelow(source, 2*n, groups)
	place := load.DrawBelow(source, 2*n+1, unique)
	phase = load.DrawBelow(load.Key(repeatKey, 0), from, repeatGroup)
	return load.Draw(key, from*repeatGroup+(place+repeatGroup-phase)*repeatInverse%repeatGroup)
}

// String says what is written: "writes data that is 50 % compressible in chunks of 512 B".
func (c *Content) String() string {
	switch {
	case c.kind == zeros:
		return "writes zeros"
	case c.kind == onePattern:
		return fmt.Sprintf("writes one pattern of %d B again and again", len(c.pattern))
	case c.percent == 0 && c.repeats == 0:
		return "writes incompressible data"
	}
	text := "writes incompressible data"
	if c.percent > 0 {
		where := "each block"
		if c.chunk > 0 {
			where = "chunks of " + unit.FormatBytes(int64(c.chunk))
		}
		text = fmt.Sprintf("writes data that is %d %% compressible in %s", c.percent, where)
	}
	if c.repeats > 0 {
		text += fmt.Sprintf(", %d %% duplicates in blocks of %s", c.repeats, unit.FormatBytes(int64(c.block)))
		if c.setBlocks > 0 {
			text += fmt.Sprintf(", of a set of %s", unit.FormatBytes(int64(c.setBlocks)*int64(c.block)))
		}
	}
	return text
}

// SizeSet gives the set that duplicates are drawn from its size: a share of the bytes of a job, in blocks.
func (c *Content) SizeSet(job *fiojob.Content, bytes int64) {
	if job.DedupeMode != "working_set" || c.repeats == 0 {
		return
	}
	c.setBlocks = uint64(max(1, bytes/100*int64(job.DedupeSetPercent)/int64(c.block)))
	c.setShared = job.DedupeGlobal
}
