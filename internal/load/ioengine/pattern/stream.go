package pattern

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
)

// Stream is one clone on one device.
type Stream struct {
	Device     int32
	Cursors    [interval.DirectionCount]Cursor
	One        bool  // all directions take the operations of Cursors[interval.Write]
	Left       int64 // bytes
	Passes     Passes
	ContentKey uint64
	// PriorityKey is that of draws for priorities, one for each direction from it on.
	PriorityKey uint64
	Writes      uint64
}

// A pass is once over the region of a stream: all of its blocks in order, all cards of a deck, or as many bytes as the job's
// size. A job makes one, or as many as loops says; with time_based or io_size they go on. As in fio each begins at the start
// of the region, and with nothing of the file in the page cache, so that a second pass measures the same as the first.
// What is drawn freely, without a random map, has passes by bytes only: with time_based it has none.

// Passes is how far a stream is with them.
type Passes struct {
	Bytes   int64 // of one pass; 0: only time ends the job, and a pass where its blocks end
	Left    int64 // bytes of this pass
	More    int64 // passes after this one
	Endless bool
	Between func() // what is to be done before each pass but the first; may be nil
}

// next returns the next operation of a direction; ok is false when the stream has done its part.
func (s *Stream) next(direction int) (offset, size int64, ok bool) {
	if s.One {
		direction = int(interval.Write)
	}
	c := &s.Cursors[direction]
	if (s.Passes.Left <= 0 || c.over()) && !s.another(c) {
		return 0, 0, false
	}
	offset, size = c.next()
	s.Left -= size
	s.Passes.Left -= size
	return offset, size, true
}

// another begins the next pass, where there is one. Where only time ends a job, each direction has passes of its own.
func (s *Stream) another(c *Cursor) bool {
	p := &s.Passes
	switch {
	case p.Endless:
		c.restart()
	case p.More == 0:
		s.Left = 0
		return false
	default:
		if p.More--; p.More < math.MaxInt64/2 {
			// A pass that ended before its bytes were done leaves them out.
			s.Left = min(s.Left, (p.More+1)*p.Bytes)
		}
		s.Begin()
	}
	if p.Between != nil {
		p.Between()
	}
	return true
}

// Begin puts all directions of a stream at the start of a pass.
func (s *Stream) Begin() {
	s.Passes.Left = s.Passes.Bytes
	if s.Passes.Bytes == 0 {
		s.Passes.Left = Unbounded
	}
	for d := range s.Cursors {
		s.Cursors[d].restart()
	}
}

// MayOverlap reports whether two writes among amount bytes of operations may go to the same place; amount 0 has no end.
func (s *Stream) MayOverlap(amount int64) bool {
	c := &s.Cursors[interval.Write]
	switch {
	case amount <= 0 || amount > c.Region.Window() || c.Region.ZoneBytes > 0:
		return true
	case c.Percent == 100 && c.Hold <= 1:
		return c.Deck == nil
	case c.Percent == 0:
		return c.Skip != 0
	}
	return true
}

// MayRepeat reports whether two operations of a direction may go to the same place.
func (s *Stream) MayRepeat(direction int) bool {
	c := &s.Cursors[direction]
	return c.Deck == nil && c.Percent > 0
}

// WrittenOnce reports whether a stream without end has stayed within its first pass.
func (s *Stream) WrittenOnce() bool {
	c := &s.Cursors[interval.Write]
	return c.Percent == 100 && c.Hold <= 1 && c.Deck != nil && c.Deck.pass == 0 && c.Region.ZoneBytes == 0
}
