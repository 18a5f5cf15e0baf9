package measuring

import (
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/stat"
)

// Splits are the times, besides the whole periods, at which intervals end. An operation that began before one and completed after
// it is recorded apart, so that it can be counted where it began.
type Splits struct {
	mu    sync.Mutex
	clock *Clock // nil: the load has not started
	times []int64
}

// splitsKept bounds how many are remembered: an operation that began before all of them counts as begun before the oldest.
const splitsKept = 64

// Start lets Add take times of a clock.
func (s *Splits) Start(clock *Clock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = clock
}

// Add ends intervals at a time to come; false if it has passed already, or the load has not started.
func (s *Splits) Add(at time.Time) (nanos int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := time.Until(at)
	if s.clock == nil || ahead <= 0 {
		return 0, false
	}
	nanos = s.clock.Now() + int64(ahead)
	if n := len(s.times); n >= splitsKept {
		s.times = append(s.times[:0], s.times[1:]...)
	}
	i, known := slices.BinarySearch(s.times, nanos)
	if !known {
		s.times = slices.Insert(s.times, i, nanos)
	}
	return nanos, true
}

// Next returns when the interval ends that begins at a time: at the end of the period, or at a split before.
func (s *Splits) Next(after, period int64) int64 {
	end := FloorTo(after, period) + period
	if split, ok := s.first(after); ok {
		end = min(end, split)
	}
	return end
}

// first returns the first split after a time.
func (s *Splits) first(after int64) (split int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearch(s.times, after+1)
	if i == len(s.times) {
		return 0, false
	}
	return s.times[i], true
}

// around returns the splits between which a time lies.
func (s *Splits) around(nanos int64) (from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearch(s.times, nanos+1)
	if i < len(s.times) {
		to = s.times[i]
	}
	if i == 0 {
		return to - int64(time.Second), to
	}
	return s.times[i-1], to
}

// at reports whether a time is that of a split.
func (s *Splits) at(nanos int64) bool {
	split, ok := s.first(nanos - 1)
	return ok && split == nanos
}

// straddling has the operations of one recorder that began before the split at which its period began, or earlier.
type straddling struct {
	splits *Splits
	split  int64 // the last one before the period; operations that began earlier straddle it
	early  []interval.Early
}

// of returns where an operation counts that began at a time before the split.
func (r *straddling) of(began int64, direction uint8) *interval.Traffic {
	from, to := r.splits.around(began)
	i := slices.IndexFunc(r.early, func(e interval.Early) bool { return e.ToNanos == to })
	if i < 0 {
		i = len(r.early)
		r.early = append(r.early, interval.Early{FromNanos: from, ToNanos: to})
	}
	return &r.early[i].Directions[direction]
}

func (r *straddling) complete(s *backend.Slot, now int64, open bool) {
	t := r.of(s.Intended, s.Direction)
	t.Operations++
	t.Bytes += uint64(s.Size)
	t.Service = recorded(t.Service, now-s.Submitted)
	if open {
		t.Response = recorded(t.Response, now-s.Intended)
	}
}

func (r *straddling) fail(s *backend.Slot, class int, now int64) {
	t := r.of(s.Intended, s.Direction)
	if t.Errors == nil {
		t.Errors = map[string]uint64{}
	}
	t.Errors[backend.ErrorClassName(class)]++
	t.Failed = recorded(t.Failed, now-s.Intended)
}

func recorded(h *stat.Histogram, nanos int64) *stat.Histogram {
	if h == nil {
		h = &stat.Histogram{}
	}
	h.Record(uint64(max(0, nanos)))
	return h
}

// addTo moves them to an interval, with times on the run's axis.
func (r *straddling) addTo(iv *interval.Interval) {
	for i := range r.early {
		from := &r.early[i]
		k := slices.IndexFunc(iv.Early, func(e interval.Early) bool { return e.ToNanos == from.ToNanos })
		if k < 0 {
			iv.Early = append(iv.Early, *from)
			continue
		}
		for d := range from.Directions {
			iv.Early[k].Directions[d].Add(&from.Directions[d])
		}
	}
	r.early = nil
}
