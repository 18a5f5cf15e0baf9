package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// Syncs stand between operations: after so many writes of a stream (fsync, fdatasync, sync_file_range) and at the end.
// They move nothing and count neither as operations nor for a rate.

// wrote makes the content of a write and notes the syncs that are due after it.
func (l *lane) wrote(s *stream, sl *slot, pool []byte) {
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
		l.syncStream = s
	}
	if j.FDataSync > 0 && s.writes%uint64(j.FDataSync) == 0 {
		l.syncs[1]++
		l.syncStream = s
	}
	if j.SyncFileRange.Every > 0 {
		l.wroteRange(s, sl)
	}
}

// wroteRange notes that a write dirtied its range, and asks for a sync of what was dirtied since the last one.
func (l *lane) wroteRange(s *stream, sl *slot) {
	if s.dirtyTo == 0 {
		s.dirtyFrom = sl.offset
	}
	s.dirtyFrom, s.dirtyTo = min(s.dirtyFrom, sl.offset), max(s.dirtyTo, sl.offset+sl.size)
	if s.writes%uint64(l.job.job.SyncFileRange.Every) == 0 {
		l.syncs[2]++
		l.syncStream = s
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
	s := l.syncStream
	sl.offset, sl.size, sl.direction = 0, 0, uint8(interval.Write)
	sl.device, sl.file = s.device, s.file
	switch {
	case l.syncs[0] > 0:
		sl.kind = opSync
		l.syncs[0]--
	case l.syncs[1] > 0:
		sl.kind = opDataSync
		l.syncs[1]--
	default:
		sl.kind = opRangeSync
		sl.offset, sl.span, sl.flags = s.dirtyFrom, s.dirtyTo-s.dirtyFrom, rangeFlags(&l.job.job.SyncFileRange)
		s.dirtyFrom, s.dirtyTo = 0, 0
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
		if s := &l.streams[l.finished]; s.writes > 0 {
			l.syncs[0], l.syncStream = 1, s
			l.issueSync(w)
		}
	}
	l.unsynced, l.finished = 0, 0
}
