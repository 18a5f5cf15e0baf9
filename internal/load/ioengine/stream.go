package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
)

// stream is one clone on one device.
type stream struct {
	device     int32
	cursors    [interval.DirectionCount]cursor
	left       int64 // bytes
	passes     passes
	contentKey uint64
	// priorityKey is that of draws for priorities, one for each direction from it on.
	priorityKey uint64
	writes      uint64
}

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
	between func() // what is to be done before each pass but the first; may be nil
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
	if p.between != nil {
		p.between()
	}
	return true
}

// begin puts all directions of a stream at the start of a pass.
func (s *stream) begin() {
	s.passes.left = s.passes.bytes
	if s.passes.bytes == 0 {
		s.passes.left = unbounded
	}
	for d := range s.cursors {
		s.cursors[d].restart()
	}
}

// mayOverlap tells whether two writes among amount bytes of operations may go to the same place; amount 0 has no end.
func (s *stream) mayOverlap(amount int64) bool {
	c := &s.cursors[interval.Write]
	switch {
	case amount <= 0 || amount > c.region.window() || c.region.zoneBytes > 0:
		return true
	case c.percent == 100 && c.hold <= 1:
		return c.deck == nil
	case c.percent == 0:
		return c.skip != 0
	}
	return true
}

// mayRepeat tells whether two operations of a direction may go to the same place.
func (s *stream) mayRepeat(direction int) bool {
	c := &s.cursors[direction]
	return c.deck == nil && c.percent > 0
}

// writtenOnce tells whether a stream without end has stayed within its first pass.
func (s *stream) writtenOnce() bool {
	c := &s.cursors[interval.Write]
	return c.percent == 100 && c.hold <= 1 && c.deck != nil && c.deck.pass == 0 && c.region.zoneBytes == 0
}
