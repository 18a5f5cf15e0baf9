package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// Syncs stand between operations: after so many writes of a stream (fsync, fdatasync, sync_file_range) and at the end.
// They move nothing and count neither as operations nor for a rate.

// syncs are those of one lane.
type syncs struct {
	job      *fiojob.Job
	owed     [3]int // to be issued: full, data only, of a range
	stream   int    // of the last write that asked for one
	unsynced int    // writes since the last syncs of end_fsync
	finished int    // streams that end_fsync has come to
	ending   bool   // what is in flight from here on is syncs of end_fsync
}

func newSyncs(job *program.Job) *syncs {
	j := &job.Fio
	if j.FSync <= 0 && j.FDataSync <= 0 && j.SyncFileRange.Every <= 0 && !j.EndFSync {
		return nil
	}
	return &syncs{job: j}
}

// wrote makes the content of a write and notes what follows from it.
func (l *lane) wrote(at int32, sl *backend.Slot, pool []byte) {
	s := &l.Streams[at]
	if l.Job.Kind != backend.KindNull && !l.Job.Dataless {
		l.Job.Content.Write(sl.Buffer[:sl.Size], pool, s.ContentKey, s.Writes)
	}
	if l.verify != nil {
		l.verify.Stamp(s, sl)
	}
	s.Writes++
	if l.syncs != nil {
		l.syncs.wrote(&l.Queue, at, sl)
	}
}

// wrote notes the syncs that are due after a write of a stream.
func (y *syncs) wrote(q *queue.Queue, at int32, sl *backend.Slot) {
	y.unsynced++
	writes := q.Streams[at].Writes
	owe := func(kind, every int) {
		if every > 0 && writes%uint64(every) == 0 {
			y.owed[kind]++
			y.stream = int(at)
		}
	}
	owe(0, y.job.FSync)
	owe(1, y.job.FDataSync)
	if y.job.SyncFileRange.Every > 0 {
		t := &q.Targets[at] // what was dirtied since the last one
		if t.DirtyTo == 0 {
			t.DirtyFrom = sl.Offset
		}
		t.DirtyFrom, t.DirtyTo = min(t.DirtyFrom, sl.Offset), max(t.DirtyTo, sl.Offset+sl.Size)
		owe(2, y.job.SyncFileRange.Every)
	}
}

// issue puts one that is owed into the batch.
func (y *syncs) issue(q *queue.Queue) {
	sl := q.Take()
	t := &q.Targets[y.stream]
	sl.Offset, sl.Size, sl.Direction = 0, 0, uint8(interval.Write)
	sl.Device, sl.File = q.Streams[y.stream].Device, t.File
	switch {
	case y.owed[0] > 0:
		sl.Kind = backend.OpSync
		y.owed[0]--
	case y.owed[1] > 0:
		sl.Kind = backend.OpDataSync
		y.owed[1]--
	default:
		sl.Kind = backend.OpRangeSync
		sl.Offset, sl.Span, sl.Flags = t.DirtyFrom, t.DirtyTo-t.DirtyFrom, backend.RangeFlags(&y.job.SyncFileRange)
		t.DirtyFrom, t.DirtyTo = 0, 0
		y.owed[2]--
	}
}

// finish issues the last syncs of end_fsync, one for each file that was written, when everything before them is done. What
// finds no free slot follows when one is.
func (y *syncs) finish(q *queue.Queue) {
	if y == nil || !y.job.EndFSync || y.unsynced == 0 || q.InFlight > 0 {
		return
	}
	y.ending = true
	for ; y.finished < len(q.Streams); y.finished++ {
		if len(q.Free) == 0 {
			return
		}
		if q.Streams[y.finished].Writes > 0 {
			y.owed[0], y.stream = 1, y.finished
			y.issue(q)
		}
	}
	y.unsynced, y.finished = 0, 0
}
