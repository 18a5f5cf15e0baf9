package ioengine

import "github.com/braggdev/bragg/internal/load"

// order says where the operations of one direction of one stream go.
type order struct {
	region  region
	sizes   sizes
	sequel  sizes // of operations that are not random, where largest is above 0
	align   int64 // of random offsets
	hot     hotspots
	percent int   // of operations at a random place; the others go on where the one before ended
	hold    int64 // random: a new place only every hold operations ("randread:8"); 0 and 1: always
	same    bool  // the operations between go to that same place and not on from it
	skip    int64 // sequential: bytes to jump after each operation ("read:17m"), may be negative
	ends    bool  // sequential: its pass ends where the region does
	real    int64 // the end of the device, from the region's start on
}

// region is the part of a device that a stream touches: length bytes from start on, or windows of it that are strided
// apart. After zoneBytes of operations in one window the stream moves on to the next and at last to the first again.
type region struct {
	start, length int64
	zoneBytes     int64 // 0: no zones, one window as long as the region
	zoneRange     int64 // length of a window
	zoneStride    int64 // from window to window
	zones         int64
}

// window returns the length of the part that is used at a time.
func (r *region) window() int64 {
	if r.zoneBytes > 0 {
		return min(r.zoneRange, r.length)
	}
	return r.length
}

// end returns where the last byte of the region that can be touched ends.
func (r *region) end() int64 {
	if r.zoneBytes > 0 {
		return r.start + (r.zones-1)*r.zoneStride + r.window()
	}
	return r.start + r.length
}

// cursor gives the operations of one direction of a stream, in order. What is drawn for operation n (its size, whether
// its place is random, the place) depends on the key and n alone; only what is sequential builds on the operation
// before. So the n-th operation is the same in every run with the same seed, at any speed and queue depth.
type cursor struct {
	order
	n        uint64
	begun    uint64 // operations of this pass
	last     int64  // the operation before, from the window's start
	position int64  // its end
	zone     int64
	zoneDone int64
	deck     *deck // nil: no random map
	front    bool  // which end of the deck is ours

	sizeKey, placeKey, choiceKey uint64
}

func newCursor(o order, deck *deck, front bool, key uint64) cursor {
	c := cursor{order: o, deck: deck, front: front}
	c.sizeKey, c.placeKey, c.choiceKey = load.Key(key, keySize), load.Key(key, keyPlace), load.Key(key, keyChoice)
	if c.skip < 0 {
		c.position = o.region.window()
	}
	return c
}

// next returns the place of the next operation on the device, and its size.
func (c *cursor) next() (offset, size int64) {
	base := c.region.start + c.zone*c.region.zoneStride
	random := c.percent == 100 && c.hold <= 1 || c.percent > 0 && c.random()
	switch {
	case random && c.deck != nil:
		offset, size = c.deck.next(c.front)
	case c.ends && c.skip >= 0:
		var room int64
		offset, room = c.following()
		size = c.fitting(room)
	default:
		size = c.size(random)
		switch {
		case random:
			offset = c.place(size)
		case c.same && c.last+size <= c.region.window():
			offset = c.last
		default:
			offset = c.follow(size)
		}
	}
	c.n++
	c.begun++
	c.last, c.position = offset, offset+size
	if c.region.zoneBytes > 0 {
		c.stride(size)
	}
	return base + offset, size
}

// size draws the size of operation n.
func (c *cursor) size(random bool) int64 {
	s := &c.sizes
	if !random && c.sequel.largest > 0 {
		s = &c.sequel
	}
	if s.fixed() {
		return s.smallest
	}
	return s.at(load.Draw(c.sizeKey, c.n))
}

// random draws whether operation n goes to a random place.
func (c *cursor) random() bool {
	if c.hold > 1 {
		return c.n%uint64(c.hold) == 0
	}
	return load.DrawBelow(c.choiceKey, c.n, 100) < uint64(c.percent)
}

// place draws an offset so that the whole operation lies in the window.
func (c *cursor) place(size int64) int64 {
	places := uint64((c.region.window()-size)/c.align) + 1
	if c.hot.kind != hotNone {
		block := c.hot.draw(c.placeKey, c.n)
		switch {
		case block < places:
		case c.hot.kind == hotZoned:
			block = places - 1 // the last place of its zone, and not one of the first zone
		default:
			block %= places
		}
		return int64(block) * c.align
	}
	return int64(load.DrawBelow(c.placeKey, c.n, places)) * c.align
}

// follow goes on where the operation before ended, and begins again where the window is over: at its start, or at its
// end when it goes backwards. It is for what has no end of a pass here: zones, what goes backwards, and the sequential
// part of a random job.
func (c *cursor) follow(size int64) int64 {
	at := c.position
	if c.begun > 0 {
		at += c.skip
	}
	if window := c.region.window(); at < 0 || at+size > window {
		at = 0
		if c.skip < 0 {
			at = (window - size) / c.align * c.align
		}
	}
	return at
}

// stride moves to the next window when enough was done in this one.
func (c *cursor) stride(size int64) {
	c.zoneDone += size
	if c.zoneDone < c.region.zoneBytes {
		return
	}
	c.zoneDone, c.position = 0, 0
	c.zone++
	if c.zone >= c.region.zones {
		c.zone = 0
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

// used returns how many bytes of the region are touched.
func (r *region) used() int64 { return r.window() * max(1, r.zones) }
