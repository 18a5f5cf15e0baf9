package analysis

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Stalls holds, for every workload on every VM, the stretches without a completed operation. They are joined over intervals, so a
// stall has its true length wherever seconds begin. A stretch in which a load does not run is none.
type Stalls struct {
	tracks tracks[silences]
}

// silences are those of one track. until is the end of its last interval; the last gap may go on after it.
type silences struct {
	ran      []interval.Gap // stretches with intervals
	gaps     []interval.Gap
	shortest int64 // shorter gaps are not kept
	unknown  bool  // some interval does not tell
	instance int
}

const (
	// joinNanos is how far the intervals of a load may be apart and still join.
	joinNanos = int64(borderNanos)
	// silencesMax bounds the gaps of a track. If there are more, the shorter ones are dropped.
	silencesMax = 20_000
)

// Add takes one interval. Intervals of one workload and VM must come in their order.
func (s *Stalls) Add(iv *interval.Interval) {
	t := s.track(iv)
	t.unknown = t.unknown || iv.Gaps == nil
	n := len(t.ran)
	joins := n > 0 && iv.StartNanos-t.ran[n-1].ToNanos <= joinNanos
	if joins {
		t.ran[n-1].ToNanos = max(t.ran[n-1].ToNanos, iv.EndNanos())
	} else {
		t.ran = append(t.ran, interval.Gap{FromNanos: iv.StartNanos, ToNanos: iv.EndNanos()})
	}
	joins = joins && iv.Instance == t.instance
	t.instance = iv.Instance
	for i, g := range iv.Gaps {
		from := iv.StartNanos + min(max(g.FromNanos, 0), iv.LengthNanos)
		to := iv.StartNanos + min(max(g.ToNanos, 0), iv.LengthNanos)
		last := len(t.gaps) - 1
		if i == 0 && joins && last >= 0 {
			t.gaps[last].ToNanos = max(t.gaps[last].ToNanos, to)
			continue
		}
		if last >= 0 && t.gaps[last].ToNanos-t.gaps[last].FromNanos < t.shortest {
			t.gaps = t.gaps[:last]
		}
		t.gaps = append(t.gaps, interval.Gap{FromNanos: from, ToNanos: to})
	}
	if len(t.gaps) > silencesMax {
		t.thin()
	}
}

// thin drops the shortest gaps, but not the last one, which may go on.
func (t *silences) thin() {
	for len(t.gaps) > silencesMax/2 {
		t.shortest *= 2
		last := t.gaps[len(t.gaps)-1]
		t.gaps = slices.DeleteFunc(t.gaps, func(g interval.Gap) bool { return g != last && g.ToNanos-g.FromNanos < t.shortest })
	}
}

func (s *Stalls) track(iv *interval.Interval) *silences {
	return s.tracks.find(iv, func(trackKey) *silences { return &silences{shortest: int64(interval.GapMin)} })
}

// Of returns the stretches in which no kept load of a VM completed an operation although one ran; vm "" stands for all VMs
// together. It is nil if that is unknown for any of them.
func (s *Stalls) Of(vm string, keep func(workload, group string, prefill bool) bool) *Silence {
	var ran, silent []interval.Gap
	all := &Silence{ShortestNanos: int64(interval.GapMin)}
	const never, forever = -1 << 62, 1 << 62
	for i, key := range s.keys(vm, keep) {
		t := s.tracks.byKey[key].of
		if t.unknown {
			return nil
		}
		all.ShortestNanos = max(all.ShortestNanos, t.shortest)
		// A load is silent in its gaps, and while it does not run; these overlap by a nanosecond to join with those.
		own, at := slices.Clone(t.gaps), int64(never)
		for _, r := range t.ran {
			own = append(own, interval.Gap{FromNanos: at, ToNanos: r.FromNanos + 1})
			at = r.ToNanos - 1
		}
		own = union(append(own, interval.Gap{FromNanos: at, ToNanos: forever}))
		if ran = append(ran, t.ran...); i == 0 {
			silent = own
		} else {
			silent = interval.Both(silent, own)
		}
	}
	if len(ran) == 0 {
		return nil
	}
	all.ran = union(ran)
	for _, g := range interval.Both(silent, all.ran) {
		if g.ToNanos-g.FromNanos >= all.ShortestNanos {
			all.gaps = append(all.gaps, g)
		}
	}
	return all
}

func (s *Stalls) keys(vm string, keep func(workload, group string, prefill bool) bool) []trackKey {
	var keys []trackKey
	for k := range s.tracks.byKey {
		if keep(k.workload, k.group, k.prefill) && (vm == "" || k.vm == vm) {
			keys = append(keys, k)
		}
	}
	return keys
}

// union merges stretches that overlap; where one only touches the next, a completion separates them.
func union(list []interval.Gap) []interval.Gap {
	slices.SortFunc(list, func(a, b interval.Gap) int { return cmp.Compare(a.FromNanos, b.FromNanos) })
	out := list[:0]
	for _, g := range list {
		if n := len(out); n > 0 && g.FromNanos < out[n-1].ToNanos {
			out[n-1].ToNanos = max(out[n-1].ToNanos, g.ToNanos)
		} else {
			out = append(out, g)
		}
	}
	return out
}

// Silence are the stretches without a completed operation, of ShortestNanos and longer.
type Silence struct {
	ShortestNanos int64
	gaps          []interval.Gap
	ran           []interval.Gap // when any of the loads ran
}

// In returns the figures of a window; nil for an unknown Silence, and for a window in which no load ran. A stall counts in each window that it reaches into, from its
// start or that of the window to its end, even after the window.
func (s *Silence) In(from, to int64) *result.Stall {
	if s == nil || len(interval.Both(s.ran, []interval.Gap{{FromNanos: from, ToNanos: to}})) == 0 {
		return nil
	}
	const second = int64(CellLength)
	st := &result.Stall{ShortestNanos: s.ShortestNanos}
	for _, g := range s.gaps {
		begin := max(g.FromNanos, from)
		if begin >= min(g.ToNanos, to) {
			continue
		}
		if length := g.ToNanos - begin; length >= s.ShortestNanos && length > st.LongestNanos {
			st.LongestNanos, st.AtNanos = length, begin
		}
		// whole seconds of the axis, within the window
		first, behind := (begin+second-1)/second, min(g.ToNanos, to)/second
		st.ZeroSeconds += int(max(0, behind-first))
	}
	return st
}
