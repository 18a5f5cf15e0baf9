package measuring

import "github.com/braggdev/bragg/internal/interval"

// seen has the times of completions of one worker in one period.
type seen struct {
	last int64          // 0: none yet
	gaps []interval.Gap // on the workload's axis: before the first completion, and those that are long enough to record
}

// Answered notes that an operation completed at now, whether or not it counts.
func (s *seen) Answered(now int64) {
	if now-s.last >= int64(interval.GapMin) {
		s.gaps = append(s.gaps, interval.Gap{FromNanos: s.last, ToNanos: now})
	}
	s.last = now
}

func (s *seen) reset() { s.last, s.gaps = 0, s.gaps[:0] }

// silence are the gaps of one worker in the interval that is being collected.
type silence struct {
	gaps  []interval.Gap // touching ones are separated by a completion
	until int64          // end of the last period
}

// add appends a period that ends at end.
func (s *silence) add(r *Recorder, end int64) {
	from := s.until
	s.until = max(end, from)
	if r != nil && r.last != 0 {
		for i, g := range r.gaps {
			s.gap(max(g.FromNanos, from), max(g.ToNanos, from), i == 0)
		}
		s.gap(min(r.last, s.until), s.until, false)
		return
	}
	s.gap(from, s.until, true)
}

// gap appends a gap. The first one of a period goes on with that of the period before.
func (s *silence) gap(from, to int64, goesOn bool) {
	if n := len(s.gaps); n > 0 && goesOn {
		s.gaps[n-1].ToNanos = to
		return
	}
	s.gaps = append(s.gaps, interval.Gap{FromNanos: from, ToNanos: to})
}

// gapsOf returns the gaps that all workers share in [from, to), from its start.
func gapsOf(workers []silence, from, to int64) interval.Gaps {
	shared := []interval.Gap{{FromNanos: from, ToNanos: to}}
	for i := range workers {
		shared = interval.Both(shared, workers[i].gaps)
	}
	length := to - from
	gaps := interval.Gaps{}
	for _, g := range shared {
		g.FromNanos, g.ToNanos = g.FromNanos-from, g.ToNanos-from
		if g.FromNanos == 0 || g.ToNanos == length || g.ToNanos-g.FromNanos >= int64(interval.GapMin) {
			gaps = append(gaps, g)
		}
	}
	if n := len(gaps); n == 0 || gaps[0].FromNanos > 0 {
		gaps = append(interval.Gaps{{}}, gaps...)
	}
	if n := len(gaps); gaps[n-1].ToNanos < length {
		gaps = append(gaps, interval.Gap{FromNanos: length, ToNanos: length})
	}
	return gaps
}
