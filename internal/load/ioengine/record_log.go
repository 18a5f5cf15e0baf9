package ioengine

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// recording writes what one lane submits to a log, in the order of submission. The lane fills batches, a goroutine writes
// them out. A lane that is faster than the log waits for it, because a log with gaps is worth nothing.
type recording struct {
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

// Record writes what the one clone of the workload does to a log, version 3 of fio's text format. files are their names
// there, in the order of the workload's devices; path is for messages. It must be called before Run, which writes the log's end; the
// caller closes to.
func (r Run) Record(to io.Writer, path string, files []string) error {
	out, err := iolog.NewWriter(to, 3, files)
	if err != nil {
		return recordError(path, err)
	}
	for _, workers := range r.phases {
		for _, w := range workers {
			for i := range w.lanes {
				w.lanes[i].recording = newRecording(out, path)
				w.recorded = true
				return nil
			}
		}
	}
	return nil
}

func newRecording(out *iolog.Writer, path string) *recording {
	c := &recording{
		full: make(chan []iolog.Action, recordingBehind), empty: make(chan []iolog.Action, recordingBehind), path: path,
		batch: make([]iolog.Action, 0, recordingBatch),
	}
	for range recordingBehind - 1 {
		c.empty <- make([]iolog.Action, 0, recordingBatch)
	}
	c.done.Go(func() { c.err = c.write(out) })
	return c
}

// write takes batches until there are no more. After an error it throws them away, so that nobody waits for it.
func (c *recording) write(out *iolog.Writer) error {
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

// ready tells whether the lane may go on with n operations at most. A log that cannot be written ends the load.
func (c *recording) ready(w *worker, n int) bool {
	if c.failed.Load() {
		w.shared.stop.Store(true)
	}
	return c.room(n)
}

// room tells whether n operations more can be taken, and makes it where the writer has gone on.
func (c *recording) room(n int) bool {
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

// recordPollNanos is how soon a lane looks again whether its log has been written.
const recordPollNanos = 50_000

// recordBatch notes what was put into the batch; now is when it is submitted.
func (w *worker) recordBatch(now int64) {
	for _, i := range w.batch.Slots[:w.batch.Count] {
		s := &w.slots[i]
		c := w.lanes[s.Clone].recording
		if c == nil || s.Kind == backend.OpRangeSync { // which iologs have no word for
			continue
		}
		a := iolog.Action{
			Nanos: now - w.lanes[s.Clone].Start, File: streamOf(&w.lanes[s.Clone].Queue, s), Offset: s.Offset, Size: s.Size,
			Kind: iolog.Kind(s.Direction),
		}
		switch s.Kind {
		case backend.OpSync:
			a.Kind, a.Offset, a.Size = iolog.Sync, 0, 0
		case backend.OpDataSync:
			a.Kind, a.Offset, a.Size = iolog.DataSync, 0, 0
		}
		c.batch = append(c.batch, a)
	}
}

// streamOf returns which of a lane's devices a slot goes to.
func streamOf(q *queue.Queue, s *backend.Slot) int32 {
	for i := range q.Streams {
		if q.Streams[i].Device == s.Device {
			return int32(i)
		}
	}
	return 0
}

// endRecording writes what is left and returns why that did not work.
func (w *worker) endRecordings() error {
	var first error
	for i := range w.lanes {
		if c := w.lanes[i].recording; c != nil && c.full != nil {
			c.full <- c.batch // full has room for every batch there is
			close(c.full)
			c.done.Wait()
			c.full = nil
			if c.err != nil && first == nil {
				first = recordError(c.path, c.err)
			}
		}
	}
	return first
}

func recordError(path string, err error) error {
	return &diag.Error{
		Code: "write-iolog", Exit: diag.ExitUndecided, Err: err, Message: fmt.Sprintf("write iolog %q", path),
		Hint: "the log ends before the load did",
	}
}

var _ = [1]struct{}{}[interval.Trim-interval.Direction(iolog.Trim)] // directions and kinds of actions have the same numbers
