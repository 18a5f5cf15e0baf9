package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// operation is one operation before it has a slot.
type operation struct {
	intended, offset, size int64
	number                 uint64 // of the write that a trim is of
	stream                 int32
	direction              uint8
}

// overlaps tells whether an operation in flight touches a byte of o. It looks at all slots of the lane, which only
// serialize_overlap and the verification of writes that may overlap pay for.
func (l *lane) overlaps(o *operation) bool {
	device := l.Streams[o.stream].Device
	for i := range l.slots {
		s := &l.slots[i]
		if s.Busy && s.Kind <= backend.OpTrim && s.Device == device && s.Offset < o.offset+o.size && o.offset < s.Offset+s.Size {
			return true
		}
	}
	return false
}

// rest issues what belongs to operations that were issued before the lane was done.
func (l *lane) rest(w *worker) {
	if l.closed != closedDone {
		switch {
		case !l.holds: // it never was issued
		case l.held.direction == uint8(interval.Trim) && l.job.TrimsBack():
			l.verify.trims.issued--
		default:
			l.N--
		}
		if l.holds && l.held.intended != backend.Never {
			l.issued--
		}
		l.holds = false
		return
	}
	for len(l.trimmed) > 0 && len(l.free) > 0 {
		l.issueTrimmed(w)
	}
	if l.holds && len(l.free) > 0 && !l.overlaps(&l.held) {
		l.holds = false
		l.put(w, &l.held)
	}
}

// done notes what follows from a successful operation.
func (l *lane) done(s *backend.Slot) {
	if s.Kind == backend.OpTrim && l.job.Pairs() && l.closed != closedTime {
		l.trimmed = append(l.trimmed, operation{
			stream: s.Stream, direction: uint8(interval.Write), offset: s.Offset, size: s.Size, intended: backend.Never,
		})
	}
}

// issueTrimmed writes the block that was trimmed last.
func (l *lane) issueTrimmed(w *worker) {
	top := len(l.trimmed) - 1
	o := l.trimmed[top]
	l.trimmed = l.trimmed[:top]
	l.put(w, &o)
}
