package ioengine

import (
	"errors"

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

// replayPollNanos is how soon a lane looks again for operations that are not read yet.
const replayPollNanos = 50_000

// fillReplay is fill for a lane that replays.
func (l *lane) fillReplay(w *worker, now int64) int64 {
	switch {
	case now < l.Start:
		return l.Start
	case now >= l.end:
		l.replayDue(w, l.end-1) // what a worker that woke a little late has left out
		l.close(queue.ClosedTime)
		l.syncs.finish(&l.Queue)
		return backend.Never
	case now < l.pauseUntil:
		return l.pauseUntil
	}
	if l.flow != nil {
		l.flow.Join()
	}
	wake := l.replayDue(w, now)
	if l.Closed != queue.StillOpen {
		l.syncs.finish(&l.Queue)
	}
	return wake
}

// replayDue issues what is due by now, as far as there is room, and returns when to look again.
func (l *lane) replayDue(w *worker, now int64) int64 {
	r := l.replay
	for len(l.Free) > l.reserve {
		if l.flow != nil && l.flow.Over() {
			return l.heldBack(now)
		}
		a := r.Peek()
		switch {
		case a == nil && r.Ended:
			l.close(queue.ClosedDone)
			return backend.Never
		case a == nil:
			return now + replayPollNanos
		}
		due := int64(backend.Never)
		if !r.NoStall {
			if due = l.Start + a.Nanos; due > now {
				return min(due, l.end)
			}
		}
		r.Next++
		if l.flow != nil {
			l.flow.Count()
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

// replayErrors is why logs of lanes could not be read to their end.
func replayErrors(lanes []lane) error {
	var errs []error
	for i := range lanes {
		errs = append(errs, lanes[i].replay.Failure())
	}
	return errors.Join(errs...)
}
