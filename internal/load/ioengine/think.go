package ioengine

import "github.com/braggdev/bragg/internal/load/ioengine/program"

// Thinking time: after so many operations, or after operations went on for so long, a lane waits for what is in flight,
// computes for a while if asked to, and pauses.

// think is how far a lane is with that.
type think struct {
	job       *program.Job
	bursts    bool  // pauses come after a time of operations
	left      int   // operations up to the next pause
	waiting   bool  // for what is in flight, or for the end of the pause
	burstFrom int64 // thinktime_iotime: when operations began after the last pause
}

func newThink(job *program.Job) *think {
	if job.Fio.ThinkTime <= 0 {
		return nil
	}
	return &think{job: job, bursts: job.Bursts(), left: max(1, job.Fio.ThinkTimeBlocks)}
}

// count notes that an operation was issued.
func (t *think) count() {
	if t.bursts {
		return
	}
	if t.left--; t.left == 0 {
		t.left, t.waiting = max(1, t.job.Fio.ThinkTimeBlocks), true
	}
}

// over is called when nothing is waited for any more; it reports whether operations went on for thinktime_iotime, so that a pause is
// next. As in fio that is counted from the begin of the pause before, which is left out, and from the start of the job: the first
// burst is longer by a pause.
func (t *think) over(start, now int64) bool {
	if t.waiting = false; t.job.Fio.Control.ThinkTimeIOTime == 0 {
		return false
	}
	if t.burstFrom == 0 {
		t.burstFrom = start
	}
	t.waiting = now-t.burstFrom >= int64(t.job.Fio.Control.ThinkTimeIOTime+t.job.Fio.ThinkTime)
	return t.waiting
}

// pause begins a pause, and computes for thinktime_spin, which is part of it. It returns when to look again.
func (t *think) pause(l *lane, w *worker, now int64) int64 {
	l.pauseUntil = now + int64(l.Job.Fio.ThinkTime)
	t.burstFrom = now
	if spin := int64(min(l.Job.Fio.Control.ThinkTimeSpin, l.Job.Fio.ThinkTime)); spin > 0 && w.shared != nil {
		// The worker of such a lane is not shared; its lock is for the collector of intervals.
		w.mu.Unlock()
		for w.shared.clock.Now() < min(now+spin, l.end) && !w.shared.stop.Load() {
			continue
		}
		w.mu.Lock()
		return now // the caller's clock stood still meanwhile: it looks again at once
	}
	return min(l.pauseUntil, l.end)
}
