package ioengine

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// A replay is a lane whose operations come from a log instead of cursors. Each is due at its time in the log, whatever
// became of those before (an open loop), and is issued when it is due and the queue has room, in the order of the log; so
// its response time holds the wait for that room. With replay_no_stall nothing is due, and the queue is kept full.
//
// A goroutine reads ahead of the lane, some batches at most, so that a log of any length takes little memory. Which file
// an operation goes to, and that it lies within what was looked through, is checked there once more: the log may have
// been changed since.

const (
	replayBatch = 1024 // operations that are handed over at a time
	// replayAhead batches are read ahead of a lane.
	replayAhead = 4
	// replayPollNanos is how soon a lane looks again for operations that are not read yet.
	replayPollNanos = 50_000
)

// replay is the part of a lane that takes its operations from a log.
type replay struct {
	log     *iolog.Log
	noStall bool
	wait    bool // for the reading, which a lane that has others beside it never does
	feed    *replayFeed
	batch   []iolog.Action
	next    int
	ended   bool
	dueSeen uint64
}

// replayFeed reads a log on a goroutine of its own.
type replayFeed struct {
	full, empty chan []iolog.Action
	stop        chan struct{}
	done        sync.WaitGroup
	err         error // valid once full is closed
}

func newReplay(log *iolog.Log, noStall bool) *replay { return &replay{log: log, noStall: noStall} }

// start begins to read ahead; r may be nil.
func (r *replay) start() error {
	if r == nil {
		return nil
	}
	reader, err := r.log.Reader()
	if err != nil {
		return err
	}
	f := &replayFeed{
		full: make(chan []iolog.Action, replayAhead), empty: make(chan []iolog.Action, replayAhead), stop: make(chan struct{}),
	}
	for range replayAhead {
		f.empty <- make([]iolog.Action, 0, replayBatch)
	}
	r.feed = f
	f.done.Go(func() {
		defer close(f.full)
		f.err = f.read(reader, r.log)
	})
	return nil
}

// startDry is start for a lane that nothing is waiting for; r may be nil.
func (r *replay) startDry() error {
	if r == nil {
		return nil
	}
	r.wait = true
	return r.start()
}

// close ends the reading; r may be nil.
func (r *replay) close() {
	if r == nil || r.feed == nil {
		return
	}
	close(r.feed.stop)
	r.feed.done.Wait()
	r.feed = nil
}

func (f *replayFeed) read(reader *iolog.Reader, log *iolog.Log) error {
	var a iolog.Action
	for {
		var batch []iolog.Action
		select {
		case batch = <-f.empty:
		case <-f.stop:
			return nil
		}
		batch = batch[:0]
		var err error
		for len(batch) < replayBatch && err == nil {
			if err = reader.Next(&a); err == nil {
				err = within(&a, log)
			}
			if err == nil {
				batch = append(batch, a)
			}
		}
		if len(batch) > 0 {
			select {
			case f.full <- batch:
			case <-f.stop:
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

var errLogChanged = errors.New("it is not what it was when it was looked through")

// within refuses what the log did not hold when it was looked through.
func within(a *iolog.Action, log *iolog.Log) error {
	if int(a.File) >= len(log.Files) || a.Kind <= iolog.Trim && a.Offset+a.Size > log.Files[a.File].End ||
		a.Kind <= iolog.Write && a.Size > log.SizeMax || log.Operations[a.Kind] == 0 {
		return errLogChanged
	}
	return nil
}

// peek returns the next operation, nil when none is there yet or none is left.
func (r *replay) peek() *iolog.Action {
	if r.next < len(r.batch) {
		return &r.batch[r.next]
	}
	if r.ended {
		return nil
	}
	if cap(r.batch) > 0 {
		r.feed.empty <- r.batch[:0] // has room for all there are
		r.batch = nil
	}
	if r.wait {
		batch, more := <-r.feed.full
		return r.take(batch, more)
	}
	select {
	case batch, more := <-r.feed.full:
		return r.take(batch, more)
	default:
		return nil
	}
}

func (r *replay) take(batch []iolog.Action, more bool) *iolog.Action {
	if !more {
		r.ended = true
		return nil
	}
	r.batch, r.next = batch, 0
	return &batch[0]
}

// dueBy returns how many operations the log has placed before a moment from its start on. Where all of them are issued that
// is exact; else the schedule of the whole log tells.
func (r *replay) dueBy(nanos int64, issued uint64) uint64 {
	due := issued
	if r.next >= len(r.batch) && !r.ended || r.next < len(r.batch) && r.batch[r.next].Nanos < nanos {
		due = max(due, uint64(r.log.Schedule.DueBefore(nanos)))
	}
	r.dueSeen = max(r.dueSeen, due)
	return r.dueSeen
}

// fillReplay is fill for a lane that replays.
func (l *lane) fillReplay(w *worker, now int64) int64 {
	switch {
	case now < l.Start:
		return l.Start
	case now >= l.end:
		l.replayDue(w, l.end-1) // what a worker that woke a little late has left out
		l.close(queue.ClosedTime)
		l.finish()
		return backend.Never
	case now < l.pauseUntil:
		return l.pauseUntil
	}
	if l.flow != nil {
		l.flow.join()
	}
	wake := l.replayDue(w, now)
	if l.Closed != queue.StillOpen {
		l.finish()
	}
	return wake
}

// replayDue issues what is due by now, as far as there is room, and returns when to look again.
func (l *lane) replayDue(w *worker, now int64) int64 {
	r := l.replay
	for len(l.Free) > l.reserve {
		if l.flow != nil && l.flow.over() {
			return l.heldBack(now)
		}
		a := r.peek()
		switch {
		case a == nil && r.ended:
			l.close(queue.ClosedDone)
			return backend.Never
		case a == nil:
			return now + replayPollNanos
		}
		due := int64(backend.Never)
		if !r.noStall {
			if due = l.Start + a.Nanos; due > now {
				return min(due, l.end)
			}
		}
		r.next++
		if l.flow != nil {
			l.flow.count()
		}
		if l.dropAfter > 0 && due < now-l.dropAfter && a.Kind <= iolog.Trim {
			l.issued++
			if due >= l.measureFrom {
				l.dropped++
			}
			continue
		}
		l.issueReplayed(w, a, due)
	}
	return backend.Never
}

// issueReplayed puts one operation of the log into the batch.
func (l *lane) issueReplayed(w *worker, a *iolog.Action, due int64) {
	s := &l.Streams[a.File]
	sl := l.Take()
	sl.Offset, sl.Size, sl.Stream = a.Offset, a.Size, a.File
	sl.Device, sl.File, sl.Intended = s.Device, l.Targets[a.File].File, due
	switch a.Kind {
	case iolog.Sync:
		sl.Direction, sl.Kind = uint8(interval.Write), backend.OpSync
		return
	case iolog.DataSync:
		sl.Direction, sl.Kind = uint8(interval.Write), backend.OpDataSync
		return
	case iolog.Write:
		l.replayed(s, sl, w.pool)
	}
	sl.Direction, sl.Kind = uint8(a.Kind), backend.OpKind(a.Kind)
	if l.Job.Priorities != nil {
		l.prioritize(s, sl)
		l.N++
	}
	if due != backend.Never {
		l.issued++
	}
}

// replayed makes the content of a write.
func (l *lane) replayed(s *pattern.Stream, sl *backend.Slot, pool []byte) {
	if l.Job.Kind != backend.KindNull {
		l.Job.Content.Write(sl.Buffer[:sl.Size], pool, s.ContentKey, s.Writes)
	}
	s.Writes++
	if l.syncs != nil {
		l.syncs.unsynced++
	}
}

// replayErrors is why logs of this worker's lanes could not be read to their end.
func (w *worker) replayErrors() error {
	var errs []error
	for i := range w.lanes {
		errs = append(errs, w.lanes[i].replay.failure())
	}
	return errors.Join(errs...)
}

// failure is why the reading of a log ended before the log did; nil where it did not; r may be nil.
func (r *replay) failure() error {
	if r == nil || !r.ended || r.feed.err == nil {
		return nil
	}
	return &diag.Error{
		Code: "read-iolog", Exit: diag.ExitUndecided, Err: r.feed.err,
		Message: fmt.Sprintf("replay iolog %q", r.log.Path),
	}
}
