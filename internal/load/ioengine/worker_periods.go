package ioengine

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
)

// Take ends the periods up to boundary for a worker that has not done so itself, and returns them.
func (w *worker) Take(boundary int64) []measuring.Period {
	w.lock()
	defer w.mu.Unlock()
	w.closePeriods(boundary)
	if !w.Ends(boundary) { // the load's end lies inside a period
		w.Tally.Close(w.period(boundary))
	}
	return w.Tally.Take(boundary)
}

// GiveBack returns an emptied recorder.
func (w *worker) GiveBack(r *measuring.Recorder) {
	w.lock()
	defer w.mu.Unlock()
	w.Tally.GiveBack(r)
}

// CPUNanos returns the CPU time that the worker's threads have used.
func (w *worker) CPUNanos() int64 {
	w.lock()
	own := w.cpu.Nanos()
	w.mu.Unlock()
	if w.backend == nil {
		return own
	}
	return own + w.backend.CPUNanos()
}

// Lap returns the most that one thread of the worker used and waited for a CPU since the former lap.
func (w *worker) Lap() (busiest, waited int64) {
	w.mu.Lock()
	busiest, waited = w.cpu.Lap()
	w.mu.Unlock()
	if b, ok := w.backend.(backend.Threaded); ok {
		used, late := b.Lap()
		busiest, waited = max(busiest, used), max(waited, late)
	}
	return busiest, waited
}

// closePeriods ends every period that is over at now.
func (w *worker) closePeriods(now int64) {
	for w.PeriodEnd <= now {
		w.Tally.Close(w.period(w.PeriodEnd))
		w.PeriodEnd = w.shared.splits.Next(w.PeriodEnd, w.shared.period)
	}
}

// period is what of a period that ends at some moment is not in its recorder.
func (w *worker) period(end int64) measuring.Period {
	p := measuring.Period{End: end, InFlight: w.flying()}
	switch {
	case w.inFlight == 0:
	case w.chain != nil: // the times of its slots belong to it until it is done
		p.Wait(end, w.chainBegan+backend.ChainNanosMax)
	default:
		for i := range w.slots {
			if s := &w.slots[i]; s.Busy {
				p.Wait(end, s.Intended)
			}
		}
	}
	for i := range w.lanes {
		if w.begun {
			l := &w.lanes[i]
			p.Due += measuring.SaturatingSub(l.dueBy(end), l.rampDue)
			p.Issued += measuring.SaturatingSub(l.issued, l.rampDue)
			p.Dropped += l.dropped
		}
	}
	return p
}

func recorderOf(lanes []lane, shared *shared) *measuring.Recorder {
	var active, open [interval.DirectionCount]bool
	for i := range lanes {
		for d, has := range lanes[i].Job.Active() {
			active[d] = active[d] || has
		}
		active[interval.Trim] = active[interval.Trim] || lanes[i].Job.TrimsBack()
		active[interval.Read] = active[interval.Read] || lanes[i].Job.ReadsBack()
	}
	open = shared.openLoop
	for d := range open {
		open[d] = open[d] && active[d]
	}
	return measuring.NewRecorder(active, open, len(shared.devices))
}
