package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
)

// operation is one operation before it has a slot.
type operation struct {
	intended, offset, size int64
	number                 uint64 // of the write that a trim is of
	stream                 int32
	direction              uint8
}

// deferred are operations of a lane that were chosen, and are issued before any other.
type deferred struct {
	trimmed []operation // trimwrite: what is to be written next
	held    operation   // serialize_overlap: waits for what it overlaps, where holds is set
	holds   bool
}

// overlaps reports whether an operation in flight touches a byte of o. It looks at all slots of the lane, which only
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
	if l.Closed != queue.ClosedDone {
		switch {
		case !l.holds: // it never was issued
		case l.held.direction == uint8(interval.Trim) && l.Job.TrimsBack():
			l.verify.Untrim()
		default:
			l.N--
		}
		if l.holds && l.held.intended != backend.Never {
			l.issued--
		}
		l.holds = false
		return
	}
	for len(l.trimmed) > 0 && len(l.Free) > 0 {
		l.issueTrimmed(w)
	}
	if l.holds && len(l.Free) > 0 && !l.overlaps(&l.held) {
		l.holds = false
		l.put(w, &l.held)
	}
}

// done notes what follows from a successful operation.
func (l *lane) done(s *backend.Slot) {
	if s.Kind == backend.OpTrim && l.Job.Pairs() && l.Closed != queue.ClosedTime {
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

// trimOf is a trim of a write as the lane issues it.
func trimOf(w *verifying.Written) operation {
	return operation{
		intended: backend.Never, offset: w.Offset, size: w.Size, number: w.Number, stream: w.Stream, direction: uint8(interval.Trim),
	}
}
