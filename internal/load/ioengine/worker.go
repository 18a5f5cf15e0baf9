package ioengine

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
)

// worker drives some lanes from one thread of the operating system:
//
//	fill: every lane puts what may start now into the batch ──▶ exchange: the back end takes the batch and waits for
//	completions ──▶ reap: completions are recorded and free their slots
//
// One lock guards everything of the worker and is free only during exchange. It is taken once per batch, never per
// operation, and is uncontended but for the moment in each period when the collector collects what was recorded. So a
// worker that is blocked in the kernel cannot hold an interval back.
type worker struct {
	shared *shared
	equipment

	mu     sync.Mutex
	wanted atomic.Int32 // others that wait for mu
	lanes  []lane
	demands
	flight
	measuring.Tally // of what completed
	residence
	account measuring.Account
	report  *verifying.Report // of verifiers
	begun   bool
	told    int   // errors that were reported
	endedAt int64 // when the load was seen to have ended with operations in flight

	observed    observed
	submissions backend.SubmissionTimer // nil: not measured
	chain       *backend.Chain          // nil: operations are done one by one
	chainBegan  int64                   // when it was last entered
}

// equipment is what a worker is built with.
type equipment struct {
	kind     backend.Kind
	backend  backend.Backend
	settings thread.Settings
	pool     []byte        // of random content
	arena    backend.Arena // of buffers
}

// flight is what a worker exchanges with its back end.
type flight struct {
	slots    []backend.Slot
	batch    queue.Batch
	done     []backend.Completion
	inFlight int
}

// demands are what some lanes of a worker ask for, so that the others are not looked at for it.
type demands struct {
	ramping  int  // lanes whose ramp a size has yet to end
	watched  bool // some lane is
	recorded bool // some lane writes a log
}

// residence is what the thread of a worker has used since the worker came there.
type residence struct {
	cpu      thread.Clock
	cameWith thread.Usage // of the thread
}

// shared is what all workers of an instance use.
type shared struct {
	clock   measuring.Clock
	stop    atomic.Bool
	period  int64 // length of an interval
	splits  measuring.Splits
	devices []load.Device
	// openLoop says for which directions response times are recorded.
	openLoop [interval.DirectionCount]bool
	// forgetSearch: what a search for a queue depth does counts nowhere.
	forgetSearch bool
	say          func(error) // of errors that a job outlives, where it asks for it; may be nil
}

const (
	// toldMax bounds how many errors of one worker are reported.
	toldMax = 1000
	// waitMaxNanos bounds how long a worker sleeps before it looks whether it shall stop.
	waitMaxNanos = int64(20 * time.Millisecond)
	// restAfterErrors keeps a job whose operations all fail at once from taking a whole CPU.
	restAfterErrors = int64(time.Millisecond)
)

// begin fixes the moment from which the times of all lanes count. The collector may already look at the worker.
func (w *worker) begin(start int64) {
	w.lock()
	defer w.mu.Unlock()
	w.begun = true
	joinFlows(w.lanes)
	w.account.StartNanos = start
	for i := range w.lanes {
		w.lanes[i].begin(start)
		if w.lanes[i].ramping() {
			w.ramping++
		}
	}
}

// lock is how all but the worker itself take mu.
func (w *worker) lock() {
	w.wanted.Add(1)
	w.mu.Lock()
	w.wanted.Add(-1)
}

// close releases the back end and the buffers.
func (w *worker) close() error {
	var err error
	leaveFlows(w.lanes)
	if w.backend != nil {
		err = w.backend.Close()
	}
	for i := range w.lanes {
		w.lanes[i].replay.Close()
	}
	return errors.Join(err, endRecordings(w.lanes), w.arena.Free())
}

func (w *worker) run() error {
	runtime.LockOSThread()
	if w.settings == (thread.Settings{}) {
		defer runtime.UnlockOSThread()
	} // else the thread ends with the goroutine, because no other goroutine may have it
	if err := w.settings.Settle(); err != nil {
		return err
	}
	thread.SharpenTimers()
	if err := w.backend.Start(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cpu = thread.NewClock()
	w.cameWith = thread.UsageNow()
	defer func() {
		leaveFlows(w.lanes)
		w.cpu.Stop()
		w.account.Usage.Add(thread.UsageNow().Since(w.cameWith))
	}()
	w.beginChains()
	now := w.shared.clock.Now()
	var failure error
	for {
		if w.shared.stop.Load() {
			for i := range w.lanes {
				w.lanes[i].stop(now)
			}
		}
		wake := w.fill(now)
		if w.batch.Count == 0 && w.inFlight == 0 && w.allClosed() {
			if found := w.verdict(); failure == nil {
				failure = found
			}
			return errors.Join(failure, replayErrors(w.lanes), w.backend.Stop())
		}
		count, err := w.exchange(wake, now)
		if err != nil {
			w.shared.stop.Store(true)
			return err
		}
		now = w.shared.clock.Now()
		w.closePeriods(now)
		w.leaveRamps()
		if err := w.reap(w.done[:count], now); err != nil && failure == nil {
			// The others stop, and what is in flight here ends as usual.
			failure = err
			w.shared.stop.Store(true)
		}
	}
}

func (w *worker) fill(now int64) (wake int64) {
	w.batch.Count = 0
	wake = backend.Never
	for i := range w.lanes {
		wake = min(wake, w.lanes[i].fill(w, now))
	}
	return wake
}

// exchange stamps the batch and gives it to the back end. The lock is free meanwhile, but for null, which cannot block and
// frees it on request. An operation of null begins when the one before was reaped: its service time is what the
// generator itself costs, because there is nothing else.
func (w *worker) exchange(wake, now int64) (int, error) {
	if w.chain != nil {
		return w.exchangeChain(wake, now), nil
	}
	if w.batch.Count > 0 {
		if w.kind != backend.KindNull {
			now = w.shared.clock.Now()
		}
		for _, i := range w.batch.Slots[:w.batch.Count] {
			s := &w.slots[i]
			s.Submitted = now
			if s.Intended == backend.Never {
				s.Intended = now
			}
		}
		w.inFlight += w.batch.Count
		if w.recorded {
			w.recordBatch(now)
		}
	}
	wait := min(max(wake-now, 0), waitMaxNanos)
	hold := w.kind == backend.KindNull && w.batch.Count > 0 && w.wanted.Load() == 0
	if !hold {
		w.mu.Unlock()
	}
	count, err := w.backend.Exchange(w.batch.Slots[:w.batch.Count], w.done, wait)
	if !hold {
		w.mu.Lock()
	}
	w.account.Exchanged(w.inFlight, w.batch.Count, count)
	w.inFlight -= count
	if w.submissions != nil {
		w.noteSubmission()
	}
	return count, err
}

func (w *worker) allClosed() bool {
	for i := range w.lanes {
		if w.lanes[i].Closed == queue.StillOpen || w.lanes[i].verify.Pending() {
			return false
		}
	}
	return true
}

// reap records completions and frees their slots. The first error that its job does not tolerate is returned, after
// all completions were seen.
func (w *worker) reap(done []backend.Completion, now int64) error {
	var firstErr error
	if len(done) > 0 {
		w.account.EndNanos = now
	}
	for _, c := range done {
		s := &w.slots[c.Slot]
		l := &w.lanes[s.Clone]
		l.Free = append(l.Free, c.Slot)
		s.Busy = false
		l.InFlight--
		if c.Result == backend.Undone {
			continue
		}
		if w.chain != nil {
			now = s.Ended
		}
		if l.observer != nil {
			w.observed.note(l, s, c.Result, now)
		}
		if int64(c.Result) == s.Size || c.Result == backend.WholeSize {
			l.failures = 0
			if s.Kind != backend.OpBurn {
				w.Record.Answered(now)
			}
			if l.Job.Trims {
				l.done(s)
			}
			switch {
			case s.Kind == backend.OpBurn || s.Kind > backend.OpTrim && l.verify.Syncing() || l.verify.Surveying():
			case s.Kind > backend.OpTrim:
				w.account.Syncs.Record(uint64(max(0, now-s.Submitted)))
			case s.Intended >= l.measureFrom:
				w.Record.Complete(s, now)
				if l.watch != nil && !l.verify.Busy() {
					l.watch.completed(s, now)
				}
				if l.Job.Priorities != nil {
					w.account.Prioritized(l.Job.Priorities, s, now)
				}
				if w.submissions != nil {
					w.account.Submissions[s.Direction].Record(uint64(max(0, s.Returned-s.Submitted)))
				}
			case l.ramping():
				l.ramp.Add(s.Size, now)
			}
			if l.verify != nil {
				if err := l.verify.Completed(&l.Queue, w.report, s); err != nil && firstErr == nil {
					firstErr = err
				}
			}
			continue
		}
		if l.verify != nil {
			l.verify.Lose(s)
		}
		if err := w.failed(l, s, c.Result, now); err != nil && firstErr == nil {
			firstErr = err
		}
	}
	w.countMismatches()
	w.observed.tell()
	if w.watched {
		if err := w.look(now); err != nil && firstErr == nil {
			firstErr = err
		}
	}
	return firstErr
}

func (w *worker) failed(l *lane, s *backend.Slot, result int32, now int64) error {
	class := backend.ErrorClass(s.Direction, result)
	if l.Job.Filled(s.Kind, class) {
		l.close(queue.ClosedDone)
		return nil
	}
	if l.ramping() {
		l.ramp.Add(s.Size, now)
	}
	w.Record.Fail(s, class, now)
	if w.account.FirstError == 0 {
		w.account.FirstError = class
	}
	d := w.shared.devices[s.Device]
	if !l.Job.Tolerates(interval.Direction(s.Direction)) && !l.Job.Ignores(s.Direction, class) {
		return s.Failure(d.Name, d.Path, result)
	}
	if w.shared.say != nil && l.Job.Fio.Control.ErrorDump && w.told < toldMax {
		w.told++
		w.shared.say(s.Failure(d.Name, d.Path, result))
	}
	l.failures++
	if l.failures >= 2*l.Job.Depth {
		l.pauseUntil = now + restAfterErrors
	}
	return nil
}

// overdue tells for how long operations have been in flight although the load of this worker has ended.
func (w *worker) overdue(now int64) time.Duration {
	w.lock()
	defer w.mu.Unlock()
	ended := w.inFlight > 0
	for i := range w.lanes {
		l := &w.lanes[i]
		ended = ended && !l.verify.Pending() && (l.Closed != queue.StillOpen || now >= l.end || w.shared.stop.Load())
	}
	switch {
	case !ended:
		w.endedAt = 0
	case w.endedAt == 0:
		w.endedAt = now
	default:
		return time.Duration(now - w.endedAt)
	}
	return 0
}

func (w *worker) hanging() int {
	w.lock()
	defer w.mu.Unlock()
	return w.flying()
}

// flying is how many operations the storage has. Of a chain it has one, and the others have not begun.
func (w *worker) flying() int {
	if w.chain != nil {
		return min(1, w.inFlight)
	}
	return w.inFlight
}

// countMismatches counts operations that read wrong data as failed.
func (w *worker) countMismatches() {
	if w.report == nil {
		return
	}
	for ; w.report.Wrong > 0; w.report.Wrong-- {
		w.Record.Mismatch(uint8(interval.Read), verifying.ErrnoMismatch)
		if w.account.FirstError == 0 {
			w.account.FirstError = verifying.ErrnoMismatch
		}
	}
}

// verdict is what verification came to in the end.
func (w *worker) verdict() error {
	var errs []error
	for i := range w.lanes {
		if l := &w.lanes[i]; l.verify != nil {
			errs = append(errs, l.verify.Verdict(&l.Queue, w.report, w.account.EndNanos))
		}
	}
	w.countMismatches()
	return errors.Join(errs...)
}

// trims reports whether some lane trims.
func trims(lanes []lane) bool {
	return slices.ContainsFunc(lanes, func(l lane) bool { return l.Job.Trims || l.Job.TrimsBack() })
}
