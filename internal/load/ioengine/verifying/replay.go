package verifying

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// readBack finds what is to be read back, operation after operation.
type readBack interface {
	// build makes a part of what is needed before the next operations, and returns true when all of it is there.
	build(v *Verifier) bool
	// next finds an operation. After foundNothingYet it is to be called again, after foundEnd once more was built.
	next(v *Verifier) (Written, found)
	// more reports whether there is another part to build.
	more() bool
	// holds tells what length bytes of an operation, from at on, are.
	holds(s *backend.Slot, at, length int64) holding
	// grain is the largest part of an operation that is overwritten as a whole or not at all.
	grain(size int64) int64
}

type found uint8

const (
	foundOne found = iota
	foundNothingYet
	foundEnd
)

// queueBack reads a backlog, or what is left of it.
type queueBack struct {
	at   int
	left int
}

func (q *queueBack) build(*Verifier) bool   { return true }
func (q *queueBack) more() bool             { return false }
func (q *queueBack) grain(size int64) int64 { return size }

func (q *queueBack) holds(s *backend.Slot, _, _ int64) holding {
	if s.Zero {
		return holdsZeroes
	}
	return holdsWrite
}

func (q *queueBack) next(v *Verifier) (Written, found) {
	for q.at < min(q.left, len(v.queue)) {
		at := q.at
		q.at++
		if !v.queue[at].dead {
			return v.queue[at], foundOne
		}
	}
	return Written{}, foundEnd
}

// rerun makes the operations of a lane again, in the order in which they were issued, without doing any.
type rerun struct {
	pattern.Sequence
	of    *queue.Queue
	slot  backend.Slot
	trims *trimmer
	limit uint64 // operations that were issued; 0: as many as there are
	loops int
}

func newRerun(v *Verifier, of *queue.Queue) *rerun {
	r := &rerun{of: of, Sequence: program.NewSequence(of.Spec, of.Job), limit: of.N, loops: v.spec.Loops - 1}
	rewind(&r.Sequence, of.Spec, of.Job)
	if v.spec.Only {
		r.limit, r.loops = 0, 0
		if v.spec.Limit != nil {
			r.limit = v.spec.Limit.Writes
		}
	}
	r.trims = newTrimmer(v.spec.Trims)
	return r
}

// next returns the next operation; nil after the last one.
func (r *rerun) next(v *Verifier) *backend.Slot {
	if s := r.nextTrim(v); s != nil {
		return s
	}
	if r.limit > 0 && r.N >= r.limit {
		return nil
	}
	for {
		var direction int
		if r.N < v.recorded {
			direction = int(v.directions[r.N/64] >> (r.N % 64) & 1)
		} else {
			direction = r.Mixed(&[interval.DirectionCount]bool{})
		}
		at, offset, size := r.Sequence.Next(direction)
		if at >= 0 {
			s := &r.slot
			s.Stream, s.Offset, s.Size, s.Kind = int32(at), offset, size, backend.OpKind(direction)
			if s.Kind == backend.OpWrite {
				s.Number = r.Streams[at].Writes
				r.Streams[at].Writes++
				if r.trims != nil {
					r.trims.wrote(Written{Offset: s.Offset, Size: s.Size, Number: s.Number, Stream: s.Stream})
				}
			}
			return s
		}
		if r.loops == 0 || r.Left <= 0 {
			return nil
		}
		r.loops--
		rewind(&r.Sequence, r.of.Spec, r.of.Job)
	}
}

// nextTrim returns the trim that comes next, nil where another operation does.
func (r *rerun) nextTrim(v *Verifier) *backend.Slot {
	if r.trims == nil || !v.spec.Only && r.trims.issued == v.trims.issued {
		return nil
	}
	t, some := r.trims.next(r.Streams)
	if !some {
		return nil
	}
	s := &r.slot
	s.Kind, s.Offset, s.Size, s.Number, s.Stream = backend.OpTrim, t.Offset, t.Size, t.Number, t.Stream
	return s
}

// replayBack reads back what a lane wrote. Where writes cannot overlap it goes through the operations once. Otherwise it
// looks at one window of one stream's region at a time: it goes through the operations to note for each unit of the
// window which write was the last, and once more to read those writes that still are the last of something.
type replayBack struct {
	of    *queue.Queue
	rerun *rerun
	built bool

	overlap      bool
	zeroes       bool // what was trimmed is checked
	stream       int32
	from, to     int64 // window on the device
	unit         int64
	interval     int64    // what is checked at a time
	last         []uint64 // number of the last write, plus one
	building     *rerun
	regionEnd    int64
	streamsEnded bool
}

// WindowUnits bounds the table of one lane: 32 MiB, which is 16 GiB of blocks of 4 KiB.
var WindowUnits = int64(1 << 22)

// buildBatch is how many operations are looked at before the worker looks after its other lanes and its clock.
const buildBatch = 1 << 16

func newReplayBack(v *Verifier, l *queue.Queue) *replayBack {
	b := &replayBack{of: l, zeroes: v.trims != nil && v.spec.Trims.Zeroes}
	for i := range l.Streams {
		s := &l.Streams[i]
		amount := l.Spec.Streams[i].Amount / int64(v.spec.Loops)
		b.overlap = b.overlap || v.trims != nil || s.MayOverlap(amount) && !(!v.spec.Only && s.WrittenOnce())
	}
	if b.overlap {
		b.stream = -1
		b.advance()
	}
	return b
}

// advance goes to the next window, or to the first one of the next stream.
func (b *replayBack) advance() {
	b.built, b.building, b.rerun = false, nil, nil
	if b.stream >= 0 && b.to < b.regionEnd {
		// Windows overlap, so that an interval that crosses the end of one lies within the next.
		b.from = b.to - b.interval + b.unit
		b.to = min(b.from+int64(len(b.last))*b.unit, b.regionEnd)
		return
	}
	b.stream++
	if int(b.stream) >= len(b.of.Streams) {
		b.streamsEnded = true
		return
	}
	region := &b.of.Spec.Streams[b.stream].Region
	b.unit = verifiedUnit(b.of.Job, region)
	b.regionEnd = region.End()
	b.interval = max(b.unit, b.of.Job.Verify.Format.Interval)
	if b.of.Job.Verify.Format.HeaderBytes() == 0 {
		b.interval = b.unit // any part of a pattern can be checked alone
	}
	units := min((b.regionEnd-region.Start+b.unit-1)/b.unit, max(WindowUnits, 2*b.interval/b.unit))
	b.last = make([]uint64, units)
	b.from, b.to = region.Start, min(region.Start+units*b.unit, b.regionEnd)
}

func (b *replayBack) more() bool {
	if !b.overlap || b.streamsEnded {
		return false
	}
	b.advance()
	return !b.streamsEnded
}

func (b *replayBack) build(v *Verifier) bool {
	if !b.overlap {
		b.rerun = newRerun(v, b.of)
		return true
	}
	if b.built {
		return true
	}
	if b.building == nil {
		b.building = newRerun(v, b.of)
		clear(b.last)
	}
	for range buildBatch {
		s := b.building.next(v)
		if s == nil {
			b.building, b.built = nil, true
			b.rerun = newRerun(v, b.of)
			return true
		}
		if first, end, mine := b.units(v, s, b.building); mine {
			b.note(s, b.last[first:end])
		}
	}
	return false
}

// note writes down what an operation leaves in the units that it covers.
func (b *replayBack) note(s *backend.Slot, units []uint64) {
	for u := range units {
		switch {
		case s.Kind == backend.OpWrite:
			units[u] = s.Number + 1
		case units[u] == s.Number+1:
			units[u] |= trimmedBit
		}
	}
}

// units returns which units of the window a write or its trim covers.
func (b *replayBack) units(v *Verifier, s *backend.Slot, r *rerun) (first, end int64, mine bool) {
	if s.Kind != backend.OpWrite && s.Kind != backend.OpTrim || s.Stream != b.stream || r.N <= v.loopStart {
		return 0, 0, false
	}
	first, end = b.span(s.Offset, s.Size)
	return first, end, first < end
}

func (b *replayBack) span(offset, size int64) (first, end int64) {
	return max(0, offset-b.from) / b.unit, (min(b.to, offset+size) - b.from + b.unit - 1) / b.unit
}

func (b *replayBack) grain(size int64) int64 {
	if b.overlap {
		return b.unit
	}
	return size
}

func (b *replayBack) next(v *Verifier) (Written, found) {
	for range buildBatch {
		s := b.rerun.next(v)
		if s == nil {
			return Written{}, foundEnd
		}
		if s.Kind != backend.OpWrite || b.rerun.N <= v.loopStart {
			continue
		}
		if v.spec.Limit != nil && !v.spec.DoneAs(b.rerun.N, s.Stream, s.Offset) {
			continue
		}
		if _, failed := v.lost[lostWrite{s.Stream, s.Number}]; failed {
			continue
		}
		if b.overlap && !b.alive(v, s) {
			continue
		}
		return Written{Offset: s.Offset, Size: s.Size, Number: s.Number, Stream: s.Stream}, foundOne
	}
	return Written{}, foundNothingYet
}

// alive reports whether a write is the last one anywhere in the window.
func (b *replayBack) alive(v *Verifier, s *backend.Slot) bool {
	first, end, mine := b.units(v, s, b.rerun)
	if !mine {
		return false
	}
	for _, last := range b.last[first:end] {
		if last == s.Number+1 || last == s.Number+1|trimmedBit && v.spec.Trims.Zeroes {
			return true
		}
	}
	return false
}

func (b *replayBack) holds(s *backend.Slot, at, length int64) holding {
	if !b.overlap {
		return holdsWrite
	}
	offset := s.Offset + at
	if offset < b.from || offset+length > b.to {
		return holdsOther
	}
	first, end := b.span(offset, length)
	written, trimmed := true, b.zeroes
	for _, last := range b.last[first:end] {
		written = written && last == s.Number+1
		trimmed = trimmed && last == s.Number+1|trimmedBit
	}
	switch {
	case written:
		return holdsWrite
	case trimmed:
		return holdsZeroes
	}
	return holdsOther
}
