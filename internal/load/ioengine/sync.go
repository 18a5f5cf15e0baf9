package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// Syncs stand between operations: after so many writes of a stream (fsync, fdatasync, sync_file_range) and at the end.
// They move nothing and count neither as operations nor for a rate.

// wrote makes the content of a write and notes the syncs that are due after it.
func (l *lane) wrote(at int32, sl *slot, pool []byte) {
	s := &l.streams[at]
	if l.job.kind != kindNull && !l.job.dataless {
		l.job.content.write(sl.buffer[:sl.size], pool, s.contentKey, s.writes)
	}
	if l.verify != nil {
		l.verify.stamp(s, sl)
	}
	s.writes++
	l.unsynced++
	j := &l.job.job
	if j.FSync > 0 && s.writes%uint64(j.FSync) == 0 {
		l.syncs[0]++
		l.syncStream = int(at)
	}
	if j.FDataSync > 0 && s.writes%uint64(j.FDataSync) == 0 {
		l.syncs[1]++
		l.syncStream = int(at)
	}
	if j.SyncFileRange.Every > 0 {
		l.wroteRange(at, sl)
	}
}

// wroteRange notes that a write dirtied its range, and asks for a sync of what was dirtied since the last one.
func (l *lane) wroteRange(at int32, sl *slot) {
	t := &l.targets[at]
	if t.dirtyTo == 0 {
		t.dirtyFrom = sl.offset
	}
	t.dirtyFrom, t.dirtyTo = min(t.dirtyFrom, sl.offset), max(t.dirtyTo, sl.offset+sl.size)
	if l.streams[at].writes%uint64(l.job.job.SyncFileRange.Every) == 0 {
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
	sl := &w.slots[l.take(w)]
	t := &l.targets[l.syncStream]
	sl.offset, sl.size, sl.direction = 0, 0, uint8(interval.Write)
	sl.device, sl.file = l.streams[l.syncStream].device, t.file
	switch {
	case l.syncs[0] > 0:
		sl.kind = opSync
		l.syncs[0]--
	case l.syncs[1] > 0:
		sl.kind = opDataSync
		l.syncs[1]--
	default:
		sl.kind = opRangeSync
		sl.offset, sl.span, sl.flags = t.dirtyFrom, t.dirtyTo-t.dirtyFrom, rangeFlags(&l.job.job.SyncFileRange)
		t.dirtyFrom, t.dirtyTo = 0, 0
		l.syncs[2]--
	}
}

// finish issues the last syncs of end_fsync, one for each file that was written, when everything before them is done. What
// finds no free slot follows when one is.
func (l *lane) finish(w *worker) {
	if !l.job.job.EndFSync || l.unsynced == 0 || l.inFlight > 0 {
		return
	}
	l.ending = true
	for ; l.finished < len(l.streams); l.finished++ {
		if len(l.free) == 0 {
			return
		}
		if l.streams[l.finished].writes > 0 {
			l.syncs[0], l.syncStream = 1, l.finished
			l.issueSync(w)
		}
	}
	l.unsynced, l.finished = 0, 0
}
