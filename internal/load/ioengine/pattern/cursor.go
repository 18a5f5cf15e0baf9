package pattern

import "github.com/braggdev/bragg/internal/load"

// Order says where the operations of one direction of one stream go.
type Order struct {
	Region  Region
	Sizes   Sizes
	Sequel  Sizes // of operations that are not random, where largest is above 0
	Align   int64 // of random offsets
	Hot     Hotspots
	Percent int   // of operations at a random place; the others go on where the one before ended
	Hold    int64 // random: a new place only every hold operations ("randread:8"); 0 and 1: always
	Same    bool  // the operations between go to that same place and not on from it
	Skip    int64 // sequential: bytes to jump after each operation ("read:17m"), may be negative
	Ends    bool  // sequential: its pass ends where the region does
	Real    int64 // the end of the device, from the region's start on
	Own     bool  // random: places are multiples of the operation's size instead of Align
	Later   bool  // with Own: not the first place
}

// Region is the part of a device that a stream touches: length bytes from start on, or windows of it that are strided
// apart. After zoneBytes of operations in one window the stream moves on to the next and at last to the first again.
type Region struct {
	Start, Length int64
	ZoneBytes     int64 // 0: no zones, one window as long as the region
	ZoneRange     int64 // length of a window
	ZoneStride    int64 // from window to window
	Zones         int64
}

// Window returns the length of the part that is used at a time.
func (r *Region) Window() int64 {
	if r.ZoneBytes > 0 {
		return min(r.ZoneRange, r.Length)
	}
	return r.Length
}

// End returns where the last byte of the region that can be touched ends.
func (r *Region) End() int64 {
	if r.ZoneBytes > 0 {
		return r.Start + (r.Zones-1)*r.ZoneStride + r.Window()
	}
	return r.Start + r.Length
}

// Cursor gives the operations of one direction of a stream, in order. What is drawn for operation n (its size, whether
// its place is random, the place) depends on the key and n alone; only what is sequential builds on the operation
// before. So the n-th operation is the same in every run with the same seed, at any speed and queue depth.
type Cursor struct {
	Order
	n        uint64
	begun    uint64 // operations of this pass
	last     int64  // the operation before, from the window's start
	position int64  // its end
	zone     int64
	zoneDone int64
	Deck     *Deck // nil: no random map
	front    bool  // which end of the deck is ours

	sizeKey, placeKey, choiceKey uint64
}

// NewCursor begins the operations of one direction; deck is nil where places are drawn freely.
func NewCursor(o Order, deck *Deck, front bool, key uint64) Cursor {
	c := Cursor{Order: o, Deck: deck, front: front}
	c.sizeKey, c.placeKey, c.choiceKey = load.Key(key, keySize), load.Key(key, keyPlace), load.Key(key, keyChoice)
	if c.Skip < 0 {
		c.position = o.Region.Window()
	}
	return c
}

// next returns the place of the next operation on the device, and its size.
func (c *Cursor) next() (offset, size int64) {
	base := c.Region.Start + c.zone*c.Region.ZoneStride
	random := c.Percent == 100 && c.Hold <= 1 || c.Percent > 0 && c.random()
	switch {
	case random && c.Deck != nil:
		offset, size = c.Deck.next(c.front)
	case c.Ends && c.Skip >= 0:
		var room int64
		offset, room = c.following()
		size = c.fitting(room)
	default:
		size = c.size(random)
		switch {
		case random:
			offset = c.place(size)
		case c.Same && c.last+size <= c.Region.Window():
			offset = c.last
		default:
			offset = c.follow(size)
		}
	}
	c.n++
	c.begun++
	c.last, c.position = offset, offset+size
	if c.Region.ZoneBytes > 0 {
		c.stride(size)
	}
	return base + offset, size
}

// size draws the size of operation n.
func (c *Cursor) size(random bool) int64 {
	s := &c.Sizes
	if !random && c.Sequel.Largest > 0 {
		s = &c.Sequel
	}
	if s.Fixed() {
		return s.Smallest
	}
	return s.at(load.Draw(c.sizeKey, c.n))
}

// random draws whether operation n goes to a random place.
func (c *Cursor) random() bool {
	if c.Hold > 1 {
		return c.n%uint64(c.Hold) == 0
	}
	return load.DrawBelow(c.choiceKey, c.n, 100) < uint64(c.Percent)
}

// place draws an offset so that the whole operation lies in the window.
func (c *Cursor) place(size int64) int64 {
	if c.Own {
		places, first := uint64(c.Region.Window()/size), uint64(0)
		if c.Later && places > 1 {
			places, first = places-1, 1
		}
		return int64(first+load.DrawBelow(c.placeKey, c.n, places)) * size
	}
	places := uint64((c.Region.Window()-size)/c.Align) + 1
	if c.Hot.Kind != HotNone {
		block := c.Hot.draw(c.placeKey, c.n)
		switch {
		case block < places:
		case c.Hot.Kind == hotZoned:
			block = places - 1 // the last place of its zone, and not one of the first zone
		default:
			block %= places
		}
		return int64(block) * c.Align
	}
	return int64(load.DrawBelow(c.placeKey, c.n, places)) * c.Align
}

// follow goes on where the operation before ended, and begins again where the window is over: at its start, or at its
// end when it goes backwards. It is for what has no end of a pass here: zones, what goes backwards, and the sequential
// part of a random job.
func (c *Cursor) follow(size int64) int64 {
	at := c.position
	if c.begun > 0 {
		at += c.Skip
	}
	if window := c.Region.Window(); at < 0 || at+size > window {
		at = 0
		if c.Skip < 0 {
			at = (window - size) / c.Align * c.Align
		}
	}
	return at
}

// stride moves to the next window when enough was done in this one.
func (c *Cursor) stride(size int64) {
	c.zoneDone += size
	if c.zoneDone < c.Region.ZoneBytes {
		return
	}
	c.zoneDone, c.position = 0, 0
	c.zone++
	if c.zone >= c.Region.Zones {
		c.zone = 0
	}
}

// over reports whether a pass has no operation left for a cursor. As in fio a sequential job ends its pass where its next
// block would not fit into the rest of the region, and goes on at the start only where a skip leads behind the end of the
// device.
func (c *Cursor) over() bool {
	switch {
	case c.Region.ZoneBytes > 0:
		return false
	case c.Deck != nil:
		return c.Deck.spent()
	case !c.Ends || c.begun == 0 || c.Skip < 0:
		return false
	}
	_, room := c.following()
	return room < c.sequentialSizes().Smallest
}

// following returns where a sequential job with a skip that is not negative goes on, and how much room is there.
func (c *Cursor) following() (at, room int64) {
	window := c.Region.Window()
	at = c.position
	if c.begun > 0 && at < window {
		if at += c.Skip; c.Skip > 0 && at >= c.Real {
			at = 0
		}
	}
	return at, window - at
}

func (c *Cursor) sequentialSizes() *Sizes {
	if c.Sequel.Largest > 0 {
		return &c.Sequel
	}
	return &c.Sizes
}

// fitting draws the size of operation n again until it fits into the room that is left, as fio does.
func (c *Cursor) fitting(room int64) int64 {
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
	return s.Smallest
}

// fittingTries bounds the draws for one size that fits; after them it is the smallest one.
const fittingTries = 256

// restart puts a cursor at the start of a pass. Draws go on with their numbers.
func (c *Cursor) restart() {
	if c.Deck != nil {
		c.Deck.restart()
	}
	c.begun, c.last, c.position = 0, 0, 0
	if c.Skip < 0 {
		c.position = c.Region.Window()
	}
}

// Used returns how many bytes of the region are touched.
func (r *Region) Used() int64 { return r.Window() * max(1, r.Zones) }
