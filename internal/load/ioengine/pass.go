package ioengine

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// A pass is once over the region of a stream: all of its blocks in order, all cards of a deck, or as many bytes as the job's
// size. A job makes one, or as many as loops says; with time_based or io_size they go on. As in fio each begins at the start
// of the region, and with nothing of the file in the page cache, so that a second pass measures the same as the first.
// What is drawn freely, without a random map, has passes by bytes only: with time_based it has none.

// passes is how far a stream is with them.
type passes struct {
	bytes   int64 // of one pass; 0: only time ends the job, and a pass where its blocks end
	left    int64 // bytes of this pass
	more    int64 // passes after this one
	endless bool
	drops   bool // the page cache loses the file between passes
}

func newPasses(spec *streamSpec, job *jobSpec) passes {
	p := passes{bytes: spec.pass, left: spec.pass, more: int64(max(1, job.job.Loops)) - 1, drops: job.dropsCache()}
	switch {
	case spec.amount <= 0:
		p.endless, p.bytes, p.left = true, 0, never
	case job.job.IOSize.Set:
		p.more = math.MaxInt64
	}
	return p
}

// dropsCache tells whether a job takes its files out of the page cache before each pass: fio's invalidate, which pre_read
// clears. Without the page cache there is nothing to drop.
func (s *jobSpec) dropsCache() bool {
	return !s.job.Direct && !s.job.Layout.KeepCache && !s.job.Control.PreRead && !s.dataless
}

// noteCached notes that jobs read what they want to stay in the page cache.
func (in *instance) noteCached() {
	for i := range in.program.jobs {
		option := KeepsCached(&in.program.jobs[i].job)
		note := interval.EngineNote{Code: interval.NoteCached, Text: "reads may come from the page cache (" + option + ")"}
		if option != "" && !slices.Contains(in.notes, note) {
			in.notes = append(in.notes, note)
		}
	}
}

// KeepsCached returns the option with which a job wants its reads to be answered from the page cache, "" where it does not.
func KeepsCached(j *fiojob.Job) string {
	kind, _, _ := backendOf(j.IOEngine)
	switch {
	case !j.Reads() || j.Direct || kind.dataless() || kind == kindNull:
		return ""
	case j.Control.PreRead:
		return "pre_read=1"
	case j.Layout.KeepCache:
		return "invalidate=0"
	}
	return ""
}

// dropCaches takes files out of the page cache before the jobs of some workers begin. What is not written yet is written
// first, because it would stay.
func dropCaches(workers []*worker) {
	dropped := map[*file]bool{}
	for _, w := range workers {
		for i := range w.lanes {
			l := &w.lanes[i]
			for k := range l.streams {
				f := l.streams[k].file
				if f == nil || f.direct || dropped[f] || !l.job.dropsCache() {
					continue
				}
				dropped[f] = true
				_ = f.sync(true) // whoever wrote it has seen its errors
				f.forget()
			}
		}
	}
}

// next returns the next operation of a direction; ok is false when the stream has done its part.
func (s *stream) next(direction int) (offset, size int64, ok bool) {
	c := &s.cursors[direction]
	if (s.passes.left <= 0 || c.over()) && !s.another(c) {
		return 0, 0, false
	}
	offset, size = c.next()
	s.left -= size
	s.passes.left -= size
	return offset, size, true
}

// another begins the next pass, where there is one. Where only time ends a job, each direction has passes of its own.
func (s *stream) another(c *cursor) bool {
	p := &s.passes
	switch {
	case p.endless:
		c.restart()
	case p.more == 0:
		s.left = 0
		return false
	default:
		if p.more--; p.more < math.MaxInt64/2 {
			// A pass that ended before its bytes were done leaves them out.
			s.left = min(s.left, (p.more+1)*p.bytes)
		}
		s.begin()
	}
	if p.drops && s.file != nil && !s.file.direct {
		s.file.forget()
	}
	return true
}

// begin puts all directions of a stream at the start of a pass.
func (s *stream) begin() {
	s.passes.left = s.passes.bytes
	if s.passes.bytes == 0 {
		s.passes.left = never
	}
	for d := range s.cursors {
		s.cursors[d].restart()
	}
}

// over tells whether a pass has no operation left for a cursor. As in fio a sequential job ends its pass where its next
// block would not fit into the rest of the region, and goes on at the start only where a skip leads behind the end of the
// device.
func (c *cursor) over() bool {
	switch {
	case c.region.zoneBytes > 0:
		return false
	case c.deck != nil:
		return c.deck.spent()
	case !c.ends || c.begun == 0 || c.skip < 0:
		return false
	}
	_, room := c.following()
	return room < c.sequentialSizes().smallest
}

// following returns where a sequential job with a skip that is not negative goes on, and how much room is there.
func (c *cursor) following() (at, room int64) {
	window := c.region.window()
	at = c.position
	if c.begun > 0 && at < window {
		if at += c.skip; c.skip > 0 && at >= c.real {
			at = 0
		}
	}
	return at, window - at
}

func (c *cursor) sequentialSizes() *sizes {
	if c.sequel.largest > 0 {
		return &c.sequel
	}
	return &c.sizes
}

// fitting draws the size of operation n again until it fits into the room that is left, as fio does.
func (c *cursor) fitting(room int64) int64 {
	size := c.size(false)
	if size <= room {
		return size
	}
	s := c.sequentialSizes()
	for try := uint64(1); try <= fittingTries; try++ {
		if size = s.at(load.Draw(load.Key(c.sizeKey, try), c.n)); size <= room {
			return size
		}
	}
	return s.smallest
}

// fittingTries bounds the draws for one size that fits; after them it is the smallest one.
const fittingTries = 256

// restart puts a cursor at the start of a pass. Draws go on with their numbers.
func (c *cursor) restart() {
	if c.deck != nil {
		c.deck.restart()
	}
	c.begun, c.last, c.position = 0, 0, 0
	if c.skip < 0 {
		c.position = c.region.window()
	}
}

// spent tells whether all cards of a pass are dealt.
func (d *deck) spent() bool { return d.front+d.back >= d.total }

// restart shuffles the cards, unless none was dealt.
func (d *deck) restart() {
	if d.front+d.back == 0 {
		return
	}
	d.pass++
	d.shuffle()
}
