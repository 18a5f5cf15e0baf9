// Package oplog keeps logs of operations away from the loop that issues them.
//
//	log ──goroutine──▶ batches ──Peek──▶ a lane that replays
//	a lane that records ──Note──▶ batches ──goroutine──▶ log
//
// How a log looks is in package iolog; when an operation of it is issued is decided by the lane.
package oplog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iolog"
)

const (
	replayBatch = 1024 // operations that are handed over at a time
	// replayAhead batches are read ahead of a lane.
	replayAhead = 4
)

// Replay is the part of a lane that takes its operations from a log.
type Replay struct {
	log     *iolog.Log
	NoStall bool
	wait    bool // for the reading, which a lane that has others beside it never does
	feed    *replayFeed
	batch   []iolog.Action
	Next    int
	Ended   bool
	dueSeen uint64
}

// replayFeed reads a log on a goroutine of its own.
type replayFeed struct {
	full, empty chan []iolog.Action
	stop        chan struct{}
	done        sync.WaitGroup
	err         error // valid once full is closed
}

func NewReplay(log *iolog.Log, noStall bool) *Replay { return &Replay{log: log, NoStall: noStall} }

// Start begins to read ahead; r may be nil.
func (r *Replay) Start() error {
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

// StartDry is start for a lane that nothing is waiting for; r may be nil.
func (r *Replay) StartDry() error {
	if r == nil {
		return nil
	}
	r.wait = true
	return r.Start()
}

// Close ends the reading; r may be nil.
func (r *Replay) Close() {
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

// Peek returns the next operation, nil when none is there yet or none is left.
func (r *Replay) Peek() *iolog.Action {
	if r.Next < len(r.batch) {
		return &r.batch[r.Next]
	}
	if r.Ended {
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

func (r *Replay) take(batch []iolog.Action, more bool) *iolog.Action {
	if !more {
		r.Ended = true
		return nil
	}
	r.batch, r.Next = batch, 0
	return &batch[0]
}

// DueBy returns how many operations the log has placed before a moment from its start on. Where all of them are issued that
// is exact; else the schedule of the whole log tells.
func (r *Replay) DueBy(nanos int64, issued uint64) uint64 {
	due := issued
	if r.Next >= len(r.batch) && !r.Ended || r.Next < len(r.batch) && r.batch[r.Next].Nanos < nanos {
		due = max(due, uint64(r.log.Schedule.DueBefore(nanos)))
	}
	r.dueSeen = max(r.dueSeen, due)
	return r.dueSeen
}

// Failure is why the reading of a log ended before the log did; nil where it did not; r may be nil.
func (r *Replay) Failure() error {
	if r == nil || !r.Ended || r.feed.err == nil {
		return nil
	}
	return &diag.Error{
		Code: "read-iolog", Exit: diag.ExitUndecided, Err: r.feed.err,
		Message: fmt.Sprintf("replay iolog %q", r.log.Path),
	}
}
