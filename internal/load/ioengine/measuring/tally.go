package measuring

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/stat"
)

// Tally has the records of one worker, by period.
type Tally struct {
	Record    *Recorder
	fresh     func() *Recorder // makes another one
	spare     []*Recorder
	PeriodEnd int64
	periods   []Period // over and not yet collected
	last      int64    // end of the last period
	splits    *Splits
	split     int64 // the last one
}

const (
	// sparesOfWorker recorders wait empty; more are made only when no one collects for seconds.
	sparesOfWorker = 2
)

func NewTally(fresh func() *Recorder, splits *Splits) Tally {
	t := Tally{fresh: fresh, Record: fresh(), periods: make([]Period, 0, 8), splits: splits}
	for range sparesOfWorker {
		t.spare = append(t.spare, fresh())
	}
	return t
}

// Close ends a period and keeps its record for the collector.
func (t *Tally) Close(p Period) {
	if t.Record.used || t.Record.last != 0 {
		p.record = t.Record
		if n := len(t.spare); n > 0 {
			t.Record, t.spare = t.spare[n-1], t.spare[:n-1]
		} else {
			t.Record = t.fresh()
		}
	}
	t.periods = append(t.periods, p)
	if t.last = p.End; t.splits.at(p.End) {
		t.split = p.End
	}
	t.Record.straddling.splits, t.Record.split = t.splits, t.split
}

// Split ends the running period at a time, if that is within it.
func (t *Tally) Split(at int64) {
	if t.last < at && at < t.PeriodEnd {
		t.PeriodEnd = at
	}
}

// PeriodStart is when the running period began.
func (t *Tally) PeriodStart() int64 { return t.last }

// Take returns the periods up to a boundary and passes their ownership to the caller.
func (t *Tally) Take(boundary int64) []Period {
	count := 0
	for count < len(t.periods) && t.periods[count].End <= boundary {
		count++
	}
	taken := append([]Period(nil), t.periods[:count]...)
	t.periods = append(t.periods[:0], t.periods[count:]...)
	return taken
}

// Ends reports whether the last closed period reaches a boundary.
func (t *Tally) Ends(boundary int64) bool {
	return t.PeriodEnd <= boundary || len(t.periods) > 0 && t.periods[len(t.periods)-1].End >= boundary
}

// GiveBack returns an emptied recorder.
func (t *Tally) GiveBack(r *Recorder) {
	if len(t.spare) < sparesOfWorker {
		t.spare = append(t.spare, r)
	}
}

// Period is a period that is over.
type Period struct {
	End         int64
	record      *Recorder // nil when nothing completed
	Due, Issued uint64    // since the start; what was dropped counts as issued
	Dropped     uint64
	InFlight    int
	// Waiting has the ages of operations in flight, of interval.WaitingMin and older; nil without any.
	Waiting *stat.Histogram
}

// Wait notes an operation that was in flight at the end of the period; since is its intended start.
func (p *Period) Wait(end, since int64) {
	if since == backend.Never || end-since < int64(interval.WaitingMin) {
		return
	}
	if p.Waiting == nil {
		p.Waiting = &stat.Histogram{}
	}
	p.Waiting.Record(uint64(end - since))
}

func SaturatingSub(a, b uint64) uint64 { return a - min(a, b) }
