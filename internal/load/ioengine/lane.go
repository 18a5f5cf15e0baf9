package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// lane is one clone of a job while it runs: its queue, its schedule and its streams, one for each device. It belongs
// to one worker and is touched under that worker's lock only.
type lane struct {
	spec    *cloneSpec
	job     *jobSpec
	index   int32 // in the worker
	clone   int   // among those of its job
	streams []stream
	turn    int
	files   *fileOrder // nil: in turn
	watch   *watch     // nil: nothing is watched
	flow    *flow      // nil: progress is not balanced against that of others
	ramp    *ramp      // nil: no size ends the ramp
	free    []int32    // slots that are not in use, a stack
	reserve int        // of free that stay so, where a search has a depth below that of the job

	pacers [interval.DirectionCount]load.Pacer
	due    [interval.DirectionCount]load.Pacer // copies that count what is due and not yet issued
	paced  [interval.DirectionCount]bool
	active [interval.DirectionCount]bool
	closed closedReason

	start       int64 // first operation
	measureFrom int64 // end of the ramp: operations before do not count; never while a size has yet to end it
	end         int64 // no operation starts from here on
	rampDue     uint64
	issued      uint64 // by the pacers
	left        int64  // operations that may still be issued
	dropAfter   int64  // operations that are later are dropped; 0: none
	dropped     uint64 // after the ramp

	usual      Priority // of operations without one of their own
	mixKey     uint64
	mixRead    uint64 // percent
	n          uint64
	inFlight   int
	thinkLeft  int
	thinking   bool
	burstFrom  int64 // thinktime_iotime: when operations began after the last pause
	pauseUntil int64 // thinktime, or a rest after many errors in a row
	failures   int
	unsynced   int
	syncs      [3]int // syncs to issue: full, data only, of a range
	syncStream *stream
	finished   int  // streams that end_fsync has come to
	ending     bool // what is in flight from here on is syncs of end_fsync
	observer   Observer
	verify     *verifier   // nil: nothing is verified
	low        int         // iodepth_low: the queue is filled again when it has drained to this
	draining   bool        // it was full and has not
	submitMax  int         // operations that are made before they are handed over
	trimmed    []operation // trimwrite: what is to be written next
	held       operation   // serialize_overlap: waits for what it overlaps, where holds is set
	holds      bool
	slots      []slot     // of this lane
	replay     *replay    // nil: operations are drawn
	recording  *recording // nil: no log is written
}

// closedReason says why a lane issues nothing any more.
type closedReason uint8

const (
	stillOpen closedReason = iota
	closedDone
	closedTime
)

// stream is one clone on one device.
type stream struct {
	device     int32
	file       *file
	cursors    [interval.DirectionCount]cursor
	left       int64 // bytes
	passes     passes
	contentKey uint64
	// priorityKey is that of draws for priorities, one for each direction from it on.
	priorityKey uint64
	writes      uint64
	// dirtyFrom and dirtyTo are what was written since the last sync_file_range; 0 and 0: nothing, or nobody asks.
	dirtyFrom, dirtyTo int64
}

const never = math.MaxInt64

func newLane(spec *cloneSpec, job *jobSpec, files []*file) lane {
	if job.replay != nil {
		return newReplayLane(spec, job, files)
	}
	l := lane{spec: spec, job: job, left: never, mixKey: load.Key(spec.key, keyMix)}
	l.active, l.submitMax, l.usual = job.draws(), job.submitMax(), usualPriority(&job.job)
	for d, rate := range spec.rate {
		l.paced[d] = l.active[d] && rate > 0
	}
	if spec.count > 0 {
		l.left = spec.count
	}
	l.mixRead = uint64(min(max(job.job.RWMixRead, 0), 100))
	l.thinkLeft = max(1, job.job.ThinkTimeBlocks)
	if l.low = job.job.IODepthLow; l.low <= 0 || l.low > job.depth {
		l.low = job.depth
	}
	for i := range spec.streams {
		l.streams = append(l.streams, newStream(&spec.streams[i], job, files))
	}
	l.files = newFileOrder(job, len(l.streams), load.Key(spec.key, keyFiles))
	l.watch = newWatch(job)
	return l
}

func newStream(spec *streamSpec, job *jobSpec, files []*file) stream {
	s := stream{device: int32(spec.device), left: never, contentKey: load.Key(spec.key, keyContent), priorityKey: load.Key(spec.key, keyPriority)}
	if len(files) > 0 {
		s.file = files[spec.device]
	}
	if spec.amount > 0 {
		s.left = spec.amount
	}
	s.passes = newPasses(spec, job)
	shared := job.reads && job.writes && job.sizes[0].equal(&job.sizes[1])
	var both *deck
	for d, active := range job.draws() {
		if !active {
			continue
		}
		o := job.order(d, spec.region, load.Key(spec.key, keyHot))
		o.real = spec.real
		var own *deck
		if job.mapped(d, &o) {
			if own = both; own == nil {
				own = newDeck(spec.region.window(), &o.sizes, load.Key(spec.key, uint64(keyDeck+job.drawnAs(d))))
			}
			if shared {
				both = own
			}
		}
		s.cursors[d] = newCursor(o, own, job.drawnAs(d) == 0, load.Key(spec.key, uint64(keyCursor+job.drawnAs(d))))
	}
	return s
}

// begin fixes the lane's times on the run's axis.
func (l *lane) begin(start int64) {
	j := &l.job.job
	l.start = start + l.delay()
	l.end = never
	for d := range l.pacers {
		if l.paced[d] {
			key := load.Key(l.spec.key, uint64(keyPacer+d))
			l.pacers[d] = load.NewPacer(l.start, l.spec.rate[d], j.RateProcess == "poisson", key)
			l.due[d] = l.pacers[d]
		}
	}
	if l.ramp != nil {
		l.beginRamp()
	} else {
		l.beginMeasuring(l.start + int64(j.RampTime))
	}
}

// choose returns the direction of the next operation and when it was due; wait says from when on there may be one,
// and is 0 when there is one now.
func (l *lane) choose(now int64) (direction int, intended, wait int64) {
	first := -1
	for d := range l.pacers {
		if l.paced[d] && (first < 0 || l.pacers[d].Next() < l.pacers[first].Next()) {
			first = d
		}
	}
	if first >= 0 {
		if due := l.pacers[first].Next(); due <= now {
			return first, due, 0
		}
	}
	read, write := l.active[0] && !l.paced[0], l.active[1] && !l.paced[1]
	switch {
	case l.active[interval.Trim] && !l.paced[interval.Trim]:
		return int(interval.Trim), 0, 0
	case read && write:
		if load.DrawBelow(l.mixKey, l.n, 100) < l.mixRead {
			return 0, 0, 0
		}
		return 1, 0, 0
	case read:
		return 0, 0, 0
	case write:
		return 1, 0, 0
	}
	return 0, 0, l.pacers[first].Next()
}

// fill puts every operation that may start now into the worker's batch, and returns when to look again.
func (l *lane) fill(w *worker, now int64) int64 {
	if wake, busy := l.verify.proceed(l, w, now); busy {
		return wake
	}
	if l.closed != stillOpen {
		l.rest(w)
		l.finish(w)
		return l.verify.closed(l, w)
	}
	if l.recording != nil && !l.recording.ready(w, 2*l.job.depth) {
		return now + recordPollNanos
	}
	if l.replay != nil {
		return l.fillReplay(w, now)
	}
	if l.job.kind == kindCPU {
		return l.fillBurn(w, now)
	}
	switch {
	case now < l.start:
		return l.start
	case now >= l.end:
		return l.expire(w, now)
	case l.thinking && l.inFlight > 0:
		return never
	case l.thinking && l.pauseUntil == 0:
		return l.pause(w, now)
	case now < l.pauseUntil:
		return l.pauseUntil
	case l.draining && l.inFlight > l.low:
		return never
	}
	l.thinking, l.draining, l.pauseUntil = false, false, 0
	if l.flow != nil {
		l.flow.join()
	}
	l.dropLate(now)
	if l.burstOver(now) {
		if l.thinking = true; l.inFlight > 0 {
			return never
		}
		return l.pause(w, now)
	}
	return l.fillQueue(w, now)
}

// fillQueue issues until the queue is full, nothing is due, or submitMax operations were made.
func (l *lane) fillQueue(w *worker, now int64) int64 {
	for first := w.batched; len(l.free) > l.reserve && !l.verify.busy(); {
		if w.batched-first >= l.submitMax {
			return now
		}
		if l.syncs != [3]int{} {
			l.issueSync(w)
			continue
		}
		if len(l.trimmed) > 0 {
			l.issueTrimmed(w)
			continue
		}
		if !l.holds {
			if o, some := l.verify.nextTrim(l); some {
				l.held, l.holds = o, true
			}
		}
		if l.holds {
			if l.overlaps(&l.held) {
				return never
			}
			l.holds = false
			l.put(w, &l.held)
			continue
		}
		if l.flow != nil && l.flow.over() {
			return l.heldBack(now)
		}
		direction, intended, wait := l.choose(now)
		if wait > 0 {
			return min(wait, l.end)
		}
		if !l.issue(w, direction, intended) {
			l.finish(w)
			return l.afterwards()
		}
		if l.thinking {
			return never
		}
	}
	l.draining = l.low < l.job.depth
	return never
}

// catchUp issues what was due in the last moment before the end, as far as slots are free. Otherwise a worker that wakes
// some microseconds late would leave operations out.
func (l *lane) catchUp(w *worker) {
	for len(l.free) > l.reserve && l.paced != [interval.DirectionCount]bool{} && !l.thinking && !l.verify.busy() && !l.verify.trimsFirst() {
		direction, intended, wait := l.choose(l.end - 1)
		if wait > 0 || !l.paced[direction] || l.flow != nil && l.flow.over() || !l.issue(w, direction, intended) {
			return
		}
	}
}

// issue takes the next operation of the direction; it returns false when the lane has done its part.
func (l *lane) issue(w *worker, direction int, intended int64) bool {
	at, offset, size := l.nextOperation(direction)
	if at < 0 {
		l.close(closedDone)
		return false
	}
	l.left--
	l.n++
	if l.flow != nil {
		l.flow.count()
	}
	o := operation{stream: int32(at), direction: uint8(direction), offset: offset, size: size, intended: never, number: l.n - 1}
	if l.paced[direction] {
		o.intended = intended
		l.issued++
		l.pacers[direction].Advance(l.weight(float64(size)))
	}
	if (l.job.job.SerializeOverlap || l.verify.orders()) && l.overlaps(&o) {
		l.held, l.holds = o, true
	} else {
		l.put(w, &o)
	}
	if l.verify != nil {
		l.verify.chose(direction)
	}
	if l.job.job.ThinkTime > 0 && !l.job.bursts() {
		if l.thinkLeft--; l.thinkLeft == 0 {
			l.thinkLeft, l.thinking = max(1, l.job.job.ThinkTimeBlocks), true
		}
	}
	return true
}

// nextOperation takes the next operation of a direction from the stream whose turn it is; at is -1 where none has one left.
func (l *lane) nextOperation(direction int) (at int, offset, size int64) {
	for l.left > 0 {
		if at = l.nextStream(); at < 0 {
			break
		}
		if offset, size, ok := l.streams[at].next(direction); ok {
			return at, offset, size
		}
	}
	return -1, 0, 0
}

// put hands one operation to the back end.
func (l *lane) put(w *worker, o *operation) {
	s := &l.streams[o.stream]
	sl := &w.slots[l.take(w)]
	sl.offset, sl.size, sl.stream = o.offset, o.size, o.stream
	sl.device, sl.file = s.device, s.file
	sl.direction, sl.kind, sl.intended = o.direction, opKind(o.direction), o.intended
	sl.busy, sl.number = true, o.number
	if l.job.kind == kindNames {
		sl.size = 0
	}
	if every := l.job.job.ForceAsync; every > 0 {
		sl.async = l.n%uint64(every) == 0
	}
	if l.job.priorities != nil {
		l.prioritize(s, sl)
	}
	if o.direction == uint8(interval.Write) {
		l.wrote(s, sl, w.pool)
	}
}

func (l *lane) take(w *worker) int32 {
	top := len(l.free) - 1
	i := l.free[top]
	l.free = l.free[:top]
	l.inFlight++
	w.batch[w.batched] = i
	w.batched++
	return i
}

// nextStream goes round the devices that have something left to do; -1: none has.
func (l *lane) nextStream() int {
	if l.files != nil {
		return l.files.next(l.streams)
	}
	for range l.streams {
		at := l.turn
		if l.turn++; l.turn == len(l.streams) {
			l.turn = 0
		}
		if l.streams[at].left > 0 {
			return at
		}
	}
	return -1
}

func (l *lane) close(why closedReason) {
	l.closed = why
	l.flow.leave()
}

// stop closes the lane before its time.
func (l *lane) stop(now int64) {
	if l.closed == stillOpen {
		l.end = min(l.end, max(now, l.measureFrom))
		l.close(closedTime)
	}
	l.verify.abort()
}

// expire closes the lane at its end.
func (l *lane) expire(w *worker, now int64) int64 {
	l.dropLate(now)
	l.catchUp(w)
	l.close(closedTime)
	l.finish(w)
	return l.afterwards()
}

// afterwards returns when to look again once the lane has closed: at once where it has to verify.
func (l *lane) afterwards() int64 {
	if l.verify.pending() && l.inFlight == 0 {
		return 0
	}
	return never
}
