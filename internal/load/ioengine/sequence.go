package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// unbounded is what is left where only time ends a clone.
const unbounded = math.MaxInt64

// sequence is the operations of one clone in their order: which direction, which stream, where, how much. Operation n is the
// same however fast the ones before were, and making it touches nothing.
type sequence struct {
	streams []stream   // by device
	files   *fileOrder // nil: in turn
	turn    int
	active  [interval.DirectionCount]bool // directions that are drawn
	mixKey  uint64
	mixRead uint64 // percent
	n       uint64 // operations that were taken
	left    int64  // operations that may still be taken
}

// mixed returns the direction of the next operation among those that have no schedule of their own, -1 where all have.
func (q *sequence) mixed(paced *[interval.DirectionCount]bool) (direction int) {
	read, write := q.active[interval.Read] && !paced[interval.Read], q.active[interval.Write] && !paced[interval.Write]
	switch {
	case q.active[interval.Trim] && !paced[interval.Trim]:
		return int(interval.Trim)
	case read && write:
		if load.DrawBelow(q.mixKey, q.n, 100) < q.mixRead {
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

// next takes the next operation of a direction from the stream whose turn it is; at is -1 where none has one left.
func (q *sequence) next(direction int) (at int, offset, size int64) {
	for q.left > 0 {
		if at = q.nextStream(); at < 0 {
			break
		}
		if offset, size, ok := q.streams[at].next(direction); ok {
			q.left--
			q.n++
			return at, offset, size
		}
	}
	return -1, 0, 0
}

// nextStream goes round the devices that have something left to do; -1: none has.
func (q *sequence) nextStream() int {
	if q.files != nil {
		return q.files.next(q.streams)
	}
	for range q.streams {
		at := q.turn
		if q.turn++; q.turn == len(q.streams) {
			q.turn = 0
		}
		if q.streams[at].left > 0 {
			return at
		}
	}
	return -1
}
