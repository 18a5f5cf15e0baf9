// Package pattern says what the operations of a clone are: their directions, devices, places and sizes.
//
//	keys (of seed, job, clone, device) ──▶ Stream: a Cursor for each direction, by Sizes, Deck and Hotspots
//	Sequence: streams in their order ──Next──▶ operation n, the same in every run with the same seed
//
// It does no I/O and knows no time: when an operation is issued, and what does it, is not decided here. What a write holds is
// in package content.
package pattern

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Unbounded is what is left where only time ends a clone.
const Unbounded = math.MaxInt64

// Sequence is the operations of one clone in their order: which direction, which stream, where, how much. Operation n is the
// same however fast the ones before were, and making it touches nothing.
type Sequence struct {
	Streams []Stream   // by device
	Files   *FileOrder // nil: in turn
	turn    int
	Active  [interval.DirectionCount]bool // directions that are drawn
	MixKey  uint64
	MixRead uint64 // percent
	N       uint64 // operations that were taken
	Left    int64  // operations that may still be taken
}

// Mixed returns the direction of the next operation among those that have no schedule of their own, -1 where all have.
func (q *Sequence) Mixed(paced *[interval.DirectionCount]bool) (direction int) {
	read, write := q.Active[interval.Read] && !paced[interval.Read], q.Active[interval.Write] && !paced[interval.Write]
	switch {
	case q.Active[interval.Trim] && !paced[interval.Trim]:
		return int(interval.Trim)
	case read && write:
		if load.DrawBelow(q.MixKey, q.N, 100) < q.MixRead {
			return int(interval.Read)
		}
		return int(interval.Write)
	case read:
		return int(interval.Read)
	case write:
		return int(interval.Write)
	}
	return -1
}

// Next takes the next operation of a direction from the stream whose turn it is; at is -1 where none has one left.
func (q *Sequence) Next(direction int) (at int, offset, size int64) {
	for q.Left > 0 {
		if at = q.nextStream(); at < 0 {
			break
		}
		if offset, size, ok := q.Streams[at].next(direction); ok {
			q.Left--
			q.N++
			return at, offset, size
		}
	}
	return -1, 0, 0
}

// nextStream goes round the devices that have something left to do; -1: none has.
func (q *Sequence) nextStream() int {
	if q.Files != nil {
		return q.Files.next(q.Streams)
	}
	for range q.Streams {
		at := q.turn
		if q.turn++; q.turn == len(q.Streams) {
			q.turn = 0
		}
		if q.Streams[at].Left > 0 {
			return at
		}
	}
	return -1
}
