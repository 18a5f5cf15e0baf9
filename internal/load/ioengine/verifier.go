package ioengine

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// verifier is the verification of one lane while it runs. It belongs to the lane's worker.
//
//	writing ──all done, or a backlog is full──▶ draining ──▶ syncing ──▶ building ──▶ reading ──▶ over, or writing again
//
// Before the last reading the files are synced and their pages dropped, so that it is the medium that is read. Building is
// there only where writes may overlap.
type verifier struct {
	spec   *program.Verification
	codec  *verify.Codec
	thread uint16
	state  verifyState
	again  bool // after this reading the lane goes on writing

	writes     uint64 // since the last reading began
	loopsLeft  int
	loopStart  uint64 // operations of the lane before this loop
	directions []uint64
	recorded   uint64 // bits of directions
	recording  bool

	mayOverlap bool

	lost    map[lostWrite]struct{} // writes that failed
	unknown bool                   // more failed than can be kept

	recent []written // the last writes, as many as the queue is deep: write n of the lane stands at n modulo that
	count  uint64    // writes of the lane
	failed uint64    // writes of the lane

	queue  []written // backlog
	trims  *trimmer  // nil: nothing is trimmed
	source readBack

	survey   survey
	syncNext int
	began    int64
	dumps    int
	failure  error
	over     bool
	expected []byte // of one operation, once it was needed
}

type verifyState uint8

const (
	verifyNot verifyState = iota
	verifyDraining
	verifySyncing
	verifyBuilding
	verifyReading
)

// lostWrite is a write that failed: what is there is not known.
type lostWrite struct {
	stream int32
	number uint64
}

const lostWritesMax = 1 << 20

// written is one write of a backlog.
type written struct {
	offset, size int64
	number       uint64
	stream       int32
	dead         bool // failed, overwritten since, or trimmed
	zero         bool // trimmed, and to be zeroes
}

func newVerifier(l *lane, thread int) *verifier {
	s := l.job.Verify
	if s == nil {
		return nil
	}
	v := &verifier{spec: s, codec: verify.New(s.Format), thread: uint16(thread), loopsLeft: s.Loops - 1}
	v.recording = s.After && l.Active[interval.Read] && l.Active[interval.Write] && l.paced != [interval.DirectionCount]bool{}
	for i := range l.Streams {
		amount := l.spec.Streams[i].Amount / int64(s.Loops)
		v.mayOverlap = v.mayOverlap || l.job.Writes && l.Streams[i].MayOverlap(amount)
	}
	v.recent = make([]written, max(1, l.job.Depth))
	if v.trims = newTrimmer(s.Trims); v.trims != nil {
		v.mayOverlap = true
	}
	if s.Backlog > 0 {
		v.queue = make([]written, 0, s.Backlog+1)
	}
	v.survey.exact = len(l.Streams) > 0 && v.countable(l)
	v.survey.possible = v.surveyable(l)
	if s.Reads && s.Limit != nil {
		l.Left = min(l.Left, int64(s.Limit.Writes))
	}
	if !s.Only {
		rewind(&l.Sequence, l.spec, l.job)
	} else {
		v.loopsLeft = 0
		l.closed, v.state = closedDone, verifyDraining
	}
	return v
}

// busy tells whether the lane must not issue operations of its own now.
func (v *verifier) busy() bool { return v != nil && v.state != verifyNot }

// proceed does what verification has to do now, where it is under way, and tells whether it still is.
func (v *verifier) proceed(l *lane, w *worker, now int64) (wake int64, busy bool) {
	if v.busy() {
		wake = v.fill(l, w, now)
	}
	return wake, v.busy()
}

// pending tells whether there may be more to do although the lane is closed.
func (v *verifier) pending() bool { return v != nil && !v.over }

// abort ends verification early: the load was stopped.
func (v *verifier) abort() {
	if v != nil {
		v.over = true
	}
}

// chose notes the direction of an operation where the clock decides about it.
func (v *verifier) chose(direction int) {
	if !v.recording {
		return
	}
	if v.recorded%64 == 0 {
		v.directions = append(v.directions, 0)
	}
	v.directions[v.recorded/64] |= uint64(direction) << (v.recorded % 64)
	v.recorded++
}

// stamp marks a write whose content is made.
func (v *verifier) stamp(s *pattern.Stream, sl *backend.Slot) {
	sl.Number = s.Writes
	v.codec.Stamp(sl.Buffer[:sl.Size], sl.Offset, v.stampOf(s, s.Writes))
	v.writes++
	v.recent[v.count%uint64(len(v.recent))] = written{offset: sl.Offset, number: sl.Number, stream: sl.Stream}
	v.count++
	if v.trims != nil {
		v.trims.wrote(written{offset: sl.Offset, size: sl.Size, number: sl.Number, stream: sl.Stream})
	}
	if v.spec.Backlog > 0 {
		v.queue = append(v.queue, written{offset: sl.Offset, size: sl.Size, number: sl.Number, stream: sl.Stream})
		if len(v.queue) >= v.spec.Backlog {
			v.state, v.again = verifyDraining, true
		}
	}
}

func (v *verifier) stampOf(s *pattern.Stream, number uint64) verify.Stamp {
	return verify.Stamp{Seed: load.Draw(s.ContentKey, number), Number: number, Thread: v.thread}
}

// orders tells whether an operation waits for those in flight that it overlaps, so that it is known which one is last.
func (v *verifier) orders() bool { return v != nil && v.mayOverlap }

// lose notes a write that failed.
func (v *verifier) lose(s *backend.Slot) {
	if s.Kind == backend.OpWrite {
		v.loseRecent(s)
	}
	if s.Kind != backend.OpWrite && s.Kind != backend.OpTrim || !v.spec.After {
		return
	}
	for i := range v.queue {
		if q := &v.queue[i]; q.stream == s.Stream && q.number == s.Number {
			q.dead = true
		}
	}
	if v.lost == nil {
		v.lost = map[lostWrite]struct{}{}
	}
	if len(v.lost) >= lostWritesMax {
		v.unknown = true
		return
	}
	v.lost[lostWrite{s.Stream, s.Number}] = struct{}{}
}

// loseRecent notes it for who verifies in another job; numbers begin anew with each loop, so that the newest one is meant.
func (v *verifier) loseRecent(s *backend.Slot) {
	v.failed++
	for back := uint64(1); back <= min(v.count, uint64(len(v.recent))); back++ {
		if w := &v.recent[(v.count-back)%uint64(len(v.recent))]; w.stream == s.Stream && w.number == s.Number {
			w.dead = true
			return
		}
	}
}

// closed is called while the lane is closed and nothing was begun yet: it begins, or says that there is nothing to do.
func (v *verifier) closed(l *lane, w *worker) int64 {
	switch {
	case v == nil || l.inFlight > 0 || l.holds || v.over:
		return backend.Never
	case v.survey.due() && !w.shared.stop.Load() && (v.spec.Only || l.closed != closedTime):
		v.state, v.again = verifyDraining, false
	case !v.spec.After || v.writes == 0 || w.shared.stop.Load():
		if !w.shared.stop.Load() {
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
func (v *verifier) fill(l *lane, w *worker, now int64) int64 {
	switch {
	case v.over:
		return backend.Never
	case now < l.start:
		return l.start
	}
	for {
		switch v.state {
		case verifyDraining:
			if l.inFlight > 0 {
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
			if wake, wait := v.read(l, w); wait {
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
func (v *verifier) sync(l *lane, w *worker) bool {
	if v.again || v.spec.Only {
		return true
	}
	for ; v.syncNext < len(l.Streams) && len(l.free) > 0; v.syncNext++ {
		if s, f := &l.Streams[v.syncNext], l.targets[v.syncNext].file; s.Writes > 0 && !f.Direct {
			sl := &w.slots[l.take(w)]
			sl.Kind, sl.Offset, sl.Size, sl.Direction = backend.OpSync, 0, 0, uint8(interval.Write)
			sl.Device, sl.File, sl.Intended = s.Device, f, backend.Never
		}
	}
	return l.inFlight == 0 && v.syncNext == len(l.Streams)
}

// surveying tells whether what is read is the survey of a job that only reads: no operation of it.
func (v *verifier) surveying() bool { return v != nil && v.spec.Reads && v.state == verifyReading }

// syncing tells whether syncs in flight are those of verification, which no job asked for.
func (v *verifier) syncing() bool { return v != nil && v.state == verifySyncing }

// prepare says what to read back.
func (v *verifier) prepare(l *lane) {
	if !v.again && !v.spec.KeepCache {
		for i := range l.targets {
			if f := l.targets[i].file; f != nil && !f.Direct {
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
		v.settleQueue()
		v.source = &queueBack{left: len(v.queue)}
		if v.again {
			v.source = &queueBack{left: v.spec.Batch}
		}
	} else {
		v.source = newReplayBack(v, l)
	}
	v.state = verifyBuilding
}

// settleQueue marks what was overwritten by a later write of the backlog.
func (v *verifier) settleQueue() {
	if v.mayOverlap {
		settle(v.queue, nil)
	}
}

// read issues what the source finds, and says when to look again where there is more to find or to wait for.
func (v *verifier) read(l *lane, w *worker) (wake int64, wait bool) {
	for len(l.free) > 0 {
		operation, found := v.source.next(v)
		switch found {
		case foundNothingYet:
			return 0, true
		case foundEnd:
			return backend.Never, l.inFlight > 0
		}
		v.issue(l, w, operation)
	}
	return backend.Never, true
}

func (v *verifier) issue(l *lane, w *worker, from written) {
	s := &l.Streams[from.stream]
	sl := &w.slots[l.take(w)]
	sl.Offset, sl.Size, sl.Stream, sl.Number = from.offset, from.size, from.stream, from.number
	sl.Device, sl.File, sl.Zero = s.Device, l.targets[from.stream].file, from.zero
	sl.Direction, sl.Kind, sl.Intended, sl.Priority = uint8(interval.Read), backend.OpRead, backend.Never, 0
}

// finish ends one reading.
func (v *verifier) finish(l *lane, w *worker, now int64) {
	v.took(w, now)
	v.state, v.source = verifyNot, nil
	if v.again {
		v.queue = slices.Delete(v.queue, 0, min(v.spec.Batch, len(v.queue)))
		return
	}
	v.queue = v.queue[:0]
	v.conclude(w, l)
	if v.survey.under || v.loopsLeft == 0 || l.closed == closedTime || l.Left <= 0 {
		v.over = true
		return
	}
	v.loopsLeft--
	v.writes, v.loopStart, v.lost = 0, l.N, nil
	rewind(&l.Sequence, l.spec, l.job)
	l.closed = stillOpen
}
