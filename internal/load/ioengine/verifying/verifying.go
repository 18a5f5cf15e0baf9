// Package verifying adds headers to the writes of a lane, reads the data back and reports mismatches. When a lane has
// finished writing (or after a number of writes), it generates the same operations again from their seed, reads their
// offsets and checks the data. No state is kept per write, because operation n and its content are functions of seed,
// stream and n. Only if writes may overlap, a table of one window of the region at a time records which write was the
// last (replay.go).
//
// A job that only reads checks all data that it reads, from any writer. Reads among writes are not checked, as in fio,
// because their blocks may never have been written.
//
//	New ──▶ Verifier of one lane: Stamp each write, Completed looks at reads, Proceed reads back; Verdict, Outcome
//
// The package issues no operation of the job. Package verify defines headers and digests.
package verifying

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// Verifier is the verification of one lane while it runs. It belongs to the lane's worker.
//
//	writing ──all done, or a backlog is full──▶ draining ──▶ syncing ──▶ building ──▶ reading ──▶ over, or writing again
//
// Before the last reading the files are synced and their pages dropped, so that the medium is read. Building happens
// only if writes may overlap.
type Verifier struct {
	original
	tail
	choices
	losses
	state verifyState
	again bool // after this reading the lane goes on writing

	writes    uint64 // since the last reading began
	loopsLeft int
	loopStart uint64 // operations of the lane before this loop

	mayOverlap bool

	queue  []Written // backlog
	trims  *trimmer  // nil: nothing is trimmed
	source readBack

	survey   survey
	syncNext int
	began    int64
	dumps    int
	failure  error
	over     bool
}

type verifyState uint8

const (
	verifyNot verifyState = iota
	verifyDraining
	verifySyncing
	verifyBuilding
	verifyReading
)

// choices are the directions of operations where the clock decides about them, so that they can be made again.
type choices struct {
	directions []uint64
	recorded   uint64 // bits of directions
	recording  bool
}

// losses are the writes that failed.
type losses struct {
	lost    map[lostWrite]struct{}
	unknown bool // more failed than can be kept
}

// lostWrite is a write that failed: what is there is not known.
type lostWrite struct {
	stream int32
	number uint64
}

const lostWritesMax = 1 << 20

// Written is one write of a backlog.
type Written struct {
	Offset, Size int64
	Number       uint64
	Stream       int32
	dead         bool // failed, overwritten since, or trimmed
	zero         bool // trimmed, and to be zeroes
}

// New returns nil for a job without verification. timed is set if a direction has a schedule; thread is the number of
// the clone.
func New(l *queue.Queue, timed bool, thread int) *Verifier {
	s := l.Job.Verify
	if s == nil {
		return nil
	}
	v := &Verifier{original: original{spec: s, codec: verify.New(s.Format), thread: uint16(thread)}, loopsLeft: s.Loops - 1}
	v.recording = s.After && l.Active[interval.Read] && l.Active[interval.Write] && timed
	for i := range l.Streams {
		amount := l.Spec.Streams[i].Amount / int64(s.Loops)
		v.mayOverlap = v.mayOverlap || l.Job.Writes && l.Streams[i].MayOverlap(amount)
	}
	v.recent = make([]Written, max(1, l.Job.Depth))
	if v.trims = newTrimmer(s.Trims); v.trims != nil {
		v.mayOverlap = true
	}
	if s.Backlog > 0 {
		v.queue = make([]Written, 0, s.Backlog+1)
	}
	v.survey.exact = len(l.Streams) > 0 && countable(s, l)
	v.survey.possible = surveyable(s, v.survey.exact, l)
	if s.Reads && s.Limit != nil {
		l.Left = min(l.Left, int64(s.Limit.Writes))
	}
	if !s.Only {
		rewind(&l.Sequence, l.Spec, l.Job)
	} else {
		v.loopsLeft = 0
		l.Closed, v.state = queue.ClosedDone, verifyDraining
	}
	return v
}

// Busy reports whether the lane must not issue operations of its own now.
func (v *Verifier) Busy() bool { return v != nil && v.state != verifyNot }

// Proceed performs the next step of a verification in progress, and reports whether it is still in progress.
func (v *Verifier) Proceed(l *queue.Queue, w *Report, now int64) (wake int64, busy bool) {
	if v.Busy() {
		wake = v.fill(l, w, now)
	}
	return wake, v.Busy()
}

// Pending reports whether there may be more to do although the lane is closed.
func (v *Verifier) Pending() bool { return v != nil && !v.over }

// Abort ends verification early: the load was stopped.
func (v *Verifier) Abort() {
	if v != nil {
		v.over = true
	}
}

// Chose records the direction of an operation if it depends on time.
func (c *choices) Chose(direction int) {
	if !c.recording {
		return
	}
	if c.recorded%64 == 0 {
		c.directions = append(c.directions, 0)
	}
	c.directions[c.recorded/64] |= uint64(direction) << (c.recorded % 64)
	c.recorded++
}

// Stamp marks a write whose content is made.
func (v *Verifier) Stamp(s *pattern.Stream, sl *backend.Slot) {
	sl.Number = s.Writes
	v.codec.Stamp(sl.Buffer[:sl.Size], sl.Offset, v.stampOf(s, s.Writes))
	v.writes++
	v.tail.add(Written{Offset: sl.Offset, Number: sl.Number, Stream: sl.Stream})
	if v.trims != nil {
		v.trims.wrote(Written{Offset: sl.Offset, Size: sl.Size, Number: sl.Number, Stream: sl.Stream})
	}
	if v.spec.Backlog > 0 {
		v.queue = append(v.queue, Written{Offset: sl.Offset, Size: sl.Size, Number: sl.Number, Stream: sl.Stream})
		if len(v.queue) >= v.spec.Backlog {
			v.state, v.again = verifyDraining, true
		}
	}
}

// Orders reports whether overlapping operations are serialized, so that the last write is known.
func (v *Verifier) Orders() bool { return v != nil && v.mayOverlap }

// Lose records a failed write.
func (v *Verifier) Lose(s *backend.Slot) {
	if s.Kind == backend.OpWrite {
		v.tail.lose(s)
	}
	if s.Kind != backend.OpWrite && s.Kind != backend.OpTrim || !v.spec.After {
		return
	}
	for i := range v.queue {
		if q := &v.queue[i]; q.Stream == s.Stream && q.Number == s.Number {
			q.dead = true
		}
	}
	v.losses.note(lostWrite{s.Stream, s.Number})
}

func (l *losses) note(w lostWrite) {
	if l.lost == nil {
		l.lost = map[lostWrite]struct{}{}
	}
	if len(l.lost) >= lostWritesMax {
		l.unknown = true
		return
	}
	l.lost[w] = struct{}{}
}

// Closed is called when the lane is closed and verification has not begun. It begins verification, or reports that
// there is none.
func (v *Verifier) Closed(l *queue.Queue, w *Report) int64 {
	switch {
	case v == nil || l.InFlight > 0 || v.over:
		return backend.Never
	case v.survey.due() && !w.Stop.Load() && (v.spec.Only || l.Closed != queue.ClosedTime):
		v.state, v.again = verifyDraining, false
	case !v.spec.After || v.writes == 0 || w.Stop.Load():
		if !w.Stop.Load() {
			v.conclude(w, l)
		}
		v.over = true
	case v.unknown:
		v.failure, v.over = verificationError(fmt.Sprintf("more than %d writes failed; what should be there is not known", lostWritesMax)), true
	default:
		v.state, v.again = verifyDraining, false
	}
	return 0
}

// fill does what verification has to do now, and returns when to look again.
func (v *Verifier) fill(l *queue.Queue, w *Report, now int64) int64 {
	switch {
	case v.over:
		return backend.Never
	case now < l.Start:
		return l.Start
	}
	for {
		switch v.state {
		case verifyDraining:
			if l.InFlight > 0 {
				return backend.Never
			}
			v.began, v.syncNext = now, 0
			v.state = verifySyncing
		case verifySyncing:
			if !v.sync(l, w) {
				return backend.Never
			}
			v.prepare(l)
		case verifyBuilding:
			if !v.source.build(v) {
				return 0
			}
			v.state = verifyReading
		case verifyReading:
			if wake, wait := v.read(l); wait {
				return wake
			}
			if v.source.more() {
				v.state = verifyBuilding
				continue
			}
			if v.survey.due() && !v.survey.under {
				v.beginSurvey(l)
				continue
			}
			v.finish(l, w, now)
			return 0
		}
	}
}

// sync flushes the files of a lane that wrote, and returns true when that is done. A backlog is read as it is.
func (v *Verifier) sync(l *queue.Queue, w *Report) bool {
	if v.again || v.spec.Only {
		return true
	}
	for ; v.syncNext < len(l.Streams) && len(l.Free) > 0; v.syncNext++ {
		if s, f := &l.Streams[v.syncNext], l.Targets[v.syncNext].File; s.Writes > 0 && !f.Direct {
			sl := l.Take()
			sl.Kind, sl.Offset, sl.Size, sl.Direction = backend.OpSync, 0, 0, uint8(interval.Write)
			sl.Device, sl.File, sl.Intended = s.Device, f, backend.Never
		}
	}
	return l.InFlight == 0 && v.syncNext == len(l.Streams)
}

// Surveying reports whether current reads are the survey of a read-only job, which do not count as its operations.
func (v *Verifier) Surveying() bool { return v != nil && v.spec.Reads && v.state == verifyReading }

// Syncing reports whether syncs in flight belong to verification, not to the job.
func (v *Verifier) Syncing() bool { return v != nil && v.state == verifySyncing }

// prepare says what to read back.
func (v *Verifier) prepare(l *queue.Queue) {
	if !v.again && !v.spec.KeepCache {
		for i := range l.Targets {
			if f := l.Targets[i].File; f != nil && !f.Direct {
				f.Forget()
			}
		}
	}
	if v.survey.due() {
		v.beginSurvey(l)
		v.state = verifyBuilding
		return
	}
	if v.spec.Backlog > 0 {
		if v.mayOverlap {
			settle(v.queue, nil) // marks what a later write of the backlog is over
		}
		v.source = &queueBack{left: len(v.queue)}
		if v.again {
			v.source = &queueBack{left: v.spec.Batch}
		}
	} else {
		v.source = newReplayBack(v, l)
	}
	v.state = verifyBuilding
}

// read issues what the source finds, and says when to look again where there is more to find or to wait for.
func (v *Verifier) read(l *queue.Queue) (wake int64, wait bool) {
	for len(l.Free) > 0 {
		from, found := v.source.next(v)
		switch found {
		case foundNothingYet:
			return 0, true
		case foundEnd:
			return backend.Never, l.InFlight > 0
		}
		s, sl := &l.Streams[from.Stream], l.Take()
		sl.Offset, sl.Size, sl.Stream, sl.Number = from.Offset, from.Size, from.Stream, from.Number
		sl.Device, sl.File, sl.Zero = s.Device, l.Targets[from.Stream].File, from.zero
		sl.Direction, sl.Kind, sl.Intended, sl.Priority = uint8(interval.Read), backend.OpRead, backend.Never, 0
	}
	return backend.Never, true
}

// finish ends one reading.
func (v *Verifier) finish(l *queue.Queue, w *Report, now int64) {
	w.took(v.spec, now-v.began)
	v.state, v.source = verifyNot, nil
	if v.again {
		v.queue = slices.Delete(v.queue, 0, min(v.spec.Batch, len(v.queue)))
		return
	}
	v.queue = v.queue[:0]
	v.conclude(w, l)
	if v.survey.under || v.loopsLeft == 0 || l.Closed == queue.ClosedTime || l.Left <= 0 {
		v.over = true
		return
	}
	v.loopsLeft--
	v.writes, v.loopStart, v.lost = 0, l.N, nil
	rewind(&l.Sequence, l.Spec, l.Job)
	l.Closed = queue.StillOpen
}
