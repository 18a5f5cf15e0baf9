package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// Syncs stand between operations: after so many writes of a stream (fsync, fdatasync, sync_file_range) and at the end.
// They move nothing and count neither as operations nor for a rate.

// wrote makes the content of a write and notes the syncs that are due after it.
func (l *lane) wrote(at int32, sl *backend.Slot, pool []byte) {
	s := &l.Streams[at]
	if l.Job.Kind != backend.KindNull && !l.Job.Dataless {
		l.Job.Content.Write(sl.Buffer[:sl.Size], pool, s.ContentKey, s.Writes)
	}
	if l.verify != nil {
		l.verify.Stamp(s, sl)
	}
	s.Writes++
	l.unsynced++
	j := &l.Job.Fio
	if j.FSync > 0 && s.Writes%uint64(j.FSync) == 0 {
		l.syncs[0]++
		l.syncStream = int(at)
	}
	if j.FDataSync > 0 && s.Writes%uint64(j.FDataSync) == 0 {
		l.syncs[1]++
		l.syncStream = int(at)
	}
	if j.SyncFileRange.Every > 0 {
		l.wroteRange(at, sl)
	}
}

// wroteRange notes that a write dirtied its range, and asks for a sync of what was dirtied since the last one.
func (l *lane) wroteRange(at int32, sl *backend.Slot) {
	t := &l.Targets[at]
	if t.DirtyTo == 0 {
		t.DirtyFrom = sl.Offset
	}
	t.DirtyFrom, t.DirtyTo = min(t.DirtyFrom, sl.Offset), max(t.DirtyTo, sl.Offset+sl.Size)
	if l.Streams[at].Writes%uint64(l.Job.Fio.SyncFileRange.Every) == 0 {
		l.syncs[2]++
		l.syncStream = int(at)
	}
}

// Flags of sync_file_range(2).
const (
	rangeWaitBefore = 1
	rangeWrite      = 2
	rangeWaitAfter  = 4
)

func rangeFlags(r *fiojob.SyncFileRange) (flags uint32) {
	if r.WaitBefore {
		flags |= rangeWaitBefore
	}
	if r.Write {
		flags |= rangeWrite
	}
	if r.WaitAfter {
		flags |= rangeWaitAfter
	}
	return flags
}

func (l *lane) issueSync(w *worker) {
	sl := l.Take()
	t := &l.Targets[l.syncStream]
	sl.Offset, sl.Size, sl.Direction = 0, 0, uint8(interval.Write)
	sl.Device, sl.File = l.Streams[l.syncStream].Device, t.File
	switch {
	case l.syncs[0] > 0:
		sl.Kind = backend.OpSync
		l.syncs[0]--
	case l.syncs[1] > 0:
		sl.Kind = backend.OpDataSync
		l.syncs[1]--
	default:
		sl.Kind = backend.OpRangeSync
		sl.Offset, sl.Span, sl.Flags = t.DirtyFrom, t.DirtyTo-t.DirtyFrom, rangeFlags(&l.Job.Fio.SyncFileRange)
		t.DirtyFrom, t.DirtyTo = 0, 0
		l.syncs[2]--
	}
}

// finish issues the last syncs of end_fsync, one for each file that was written, when everything before them is done. What
// finds no free slot follows when one is.
func (l *lane) finish(w *worker) {
	if !l.Job.Fio.EndFSync || l.unsynced == 0 || l.InFlight > 0 {
		return
	}
	l.ending = true
	for ; l.finished < len(l.Streams); l.finished++ {
		if len(l.Free) == 0 {
			return
		}
		if l.Streams[l.finished].Writes > 0 {
			l.syncs[0], l.syncStream = 1, l.finished
			l.issueSync(w)
		}
	}
	l.unsynced, l.finished = 0, 0
}
