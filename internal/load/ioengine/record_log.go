package ioengine

import (
	"errors"
	"io"

	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/oplog"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// Record logs the operations of the workload's only clone in version 3 of fio's text format. files are the names in the
// log, in the order of the workload's devices; path is for messages. It must be called before Run, which writes the end
// of the log; the caller closes to.
func (r Run) Record(to io.Writer, path string, files []string) error {
	out, err := iolog.NewWriter(to, 3, files)
	if err != nil {
		return oplog.RecordError(path, err)
	}
	for _, w := range r.workers() {
		for i := range w.lanes {
			w.lanes[i].recording = oplog.NewRecording(out, path)
			w.recorded = true
			return nil
		}
	}
	return nil
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
		c.Note(a)
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

// endRecordings writes what is left and returns why that did not work.
func endRecordings(lanes []lane) error {
	var errs []error
	for i := range lanes {
		errs = append(errs, lanes[i].recording.End())
	}
	return errors.Join(errs...)
}

var _ = [1]struct{}{}[interval.Trim-interval.Direction(iolog.Trim)] // directions and kinds of actions have the same numbers
