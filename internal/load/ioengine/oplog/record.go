package oplog

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iolog"
)

// Recording writes what one lane submits to a log, in the order of submission. The lane fills batches, a goroutine writes
// them out. A lane that is faster than the log waits for it, because a log with gaps cannot be replayed.
type Recording struct {
	batch       []iolog.Action
	full, empty chan []iolog.Action
	failed      atomic.Bool
	done        sync.WaitGroup
	err         error // valid once done
	path        string
}

const (
	recordingBatch = 4096
	// recordingBehind batches wait for the writer at most, 640 KiB.
	recordingBehind = 4
)

func NewRecording(out *iolog.Writer, path string) *Recording {
	c := &Recording{
		full: make(chan []iolog.Action, recordingBehind), empty: make(chan []iolog.Action, recordingBehind), path: path,
		batch: make([]iolog.Action, 0, recordingBatch),
	}
	for range recordingBehind - 1 {
		c.empty <- make([]iolog.Action, 0, recordingBatch)
	}
	c.done.Go(func() { c.err = c.write(out) })
	return c
}

// write takes batches until there are no more. After an error it throws them away, so that no caller waits for it.
func (c *Recording) write(out *iolog.Writer) error {
	var first error
	last := int64(0)
	for batch := range c.full {
		for i := range batch {
			if first == nil {
				first = out.Write(&batch[i])
			}
			last = batch[i].Nanos
		}
		if first != nil {
			c.failed.Store(true)
		}
		c.empty <- batch[:0] // has room for all there are
	}
	if first == nil {
		first = out.Close(last)
	}
	return first
}

// Ready reports whether the lane may go on with n operations at most. A log that cannot be written ends the load.
func (c *Recording) Ready(stop *atomic.Bool, n int) bool {
	if c.failed.Load() {
		stop.Store(true)
	}
	return c.room(n)
}

// room reports whether n operations more can be taken, and makes it where the writer has gone on.
func (c *Recording) room(n int) bool {
	if len(c.batch)+n <= cap(c.batch) {
		return true
	}
	select {
	case empty := <-c.empty:
		c.full <- c.batch // has room for all there are
		if c.batch = empty; cap(c.batch) < n {
			c.batch = make([]iolog.Action, 0, n)
		}
		return true
	default:
		return false
	}
}

func RecordError(path string, err error) error {
	return &diag.Error{
		Code: "write-iolog", Exit: diag.ExitUndecided, Err: err, Message: fmt.Sprintf("write iolog %q", path),
		Hint: "the log ends before the load did",
	}
}

// Note notes an operation.
func (c *Recording) Note(a iolog.Action) { c.batch = append(c.batch, a) }

// End writes what is left and returns why that did not work; c may be nil.
func (c *Recording) End() error {
	if c == nil || c.full == nil {
		return nil
	}
	c.full <- c.batch // full has room for every batch there is
	close(c.full)
	c.done.Wait()
	if c.full = nil; c.err != nil {
		return RecordError(c.path, c.err)
	}
	return nil
}
