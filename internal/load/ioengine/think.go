package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// Thinking time: after so many operations, or after operations went on for so long, a lane waits for what is in flight,
// computes for a while if asked to, and pauses.

// burstOver tells whether operations went on for thinktime_iotime. As in fio that is counted from the begin of the pause before,
// which is left out, and from the start of the job: the first burst is longer by a pause.
func (l *lane) burstOver(now int64) bool {
	length := int64(l.Job.Fio.Control.ThinkTimeIOTime)
	if length == 0 || l.Job.Fio.ThinkTime == 0 {
		return false
	}
	if l.burstFrom == 0 {
		l.burstFrom = l.Start
	}
	return now-l.burstFrom >= length+int64(l.Job.Fio.ThinkTime)
}

// pause begins a pause, and computes for thinktime_spin, which is part of it. It returns when to look again.
func (l *lane) pause(w *worker, now int64) int64 {
	l.pauseUntil = now + int64(l.Job.Fio.ThinkTime)
	l.burstFrom = now
	if spin := int64(min(l.Job.Fio.Control.ThinkTimeSpin, l.Job.Fio.ThinkTime)); spin > 0 && w.shared != nil {
		// Nobody shares the worker of such a lane; its lock is for whoever collects intervals.
		w.mu.Unlock()
		for w.shared.clock.now() < min(now+spin, l.end) && !w.shared.stop.Load() {
			continue
		}
		w.mu.Lock()
		return now // the caller's clock stood still meanwhile: it looks again at once
	}
	return min(l.pauseUntil, l.end)
}

// delay returns how long after its job the clone begins, in nanoseconds.
func (l *lane) delay() int64 {
	j := &l.Job.Fio
	span := int64(j.Control.StartDelayMax - j.StartDelay)
	if span <= 0 || span == math.MaxInt64 {
		return int64(j.StartDelay)
	}
	return int64(j.StartDelay) + int64(load.DrawBelow(load.Key(l.Spec.Key, pattern.KeyDelay), 0, uint64(span)+1))
}
