package analysis

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Means are the exact means of rates in windows: the operations that completed there, divided by the time in which loads ran. The points
// of a chart leave out the partial seconds at the edges of a window and weigh a short second like a whole one; these do not.
//
// An interval that crosses the border of a window by more than borderNanos counts in neither: its VM counts there with the mean of its
// other intervals. Operations that drain after the runtime of a load count, the time that they take does not.
type Means struct {
	Windows   []result.Window
	SizeBound SizeBound
	Extent    Extent

	tracks tracks[meansOf]
	order  []*meansOf // of their first intervals: sums in a random order differ in the last digit
}

// meansOf is what one track did.
type meansOf struct {
	vm      string
	windows []meanOf

	instance int
	recent   [2]pace // its last half second or longer, and what came since then
}

// recentMin is how much of a load tells its pace.
const recentMin = 0.5e9

// pace are the operations of some time.
type pace struct{ operations, nanos float64 }

// meanOf is what one track did in one window.
type meanOf struct {
	operations, bytes float64        // of intervals within it
	nanos             int64          // that these cover
	shared            [2]float64     // operations and bytes of intervals across its border, in proportion to time
	ran               []interval.Gap // stretches with intervals
}

// Add takes one interval, not merged with others. Intervals of one workload and VM must come in their order.
func (m *Means) Add(iv *interval.Interval) {
	p, track := partOf(iv), m.of(iv)
	drains := track.follows(iv, &p) && Drain(iv, m.SizeBound)
	if !m.Extent.Meets(p.from, p.to) {
		return
	}
	held := m.Extent.Holds(iv)
	for i, w := range m.Windows {
		from, to := max(p.from, w.FromNanos), min(p.to, w.ToNanos)
		within := held && p.from >= w.FromNanos-borderNanos && p.to <= w.ToNanos+borderNanos
		if middle := p.from + (p.to-p.from)/2; from >= to || within && (middle < w.FromNanos || middle >= w.ToNanos) {
			continue
		}
		o := &track.windows[i]
		if within {
			from, to = p.from, p.to
			o.operations, o.bytes = o.operations+p.operations, o.bytes+p.bytes
		} else {
			share := float64(to-from) / float64(p.to-p.from)
			o.shared[0], o.shared[1] = o.shared[0]+share*p.operations, o.shared[1]+share*p.bytes
		}
		if drains {
			continue
		}
		if within {
			o.nanos += p.to - p.from
		}
		if n := len(o.ran); n > 0 && from-o.ran[n-1].ToNanos <= 1 {
			o.ran[n-1].ToNanos = max(o.ran[n-1].ToNanos, to)
		} else {
			o.ran = append(o.ran, interval.Gap{FromNanos: from, ToNanos: to})
		}
	}
}

// follows takes the next interval, and reports whether its rate is less than half of that just before it in the same start: if it is the
// last one, it only waits for operations in flight. The rate of a whole window does not show that: a load that became slow for good
// runs below half of it to its end.
func (t *meansOf) follows(iv *interval.Interval, p *part) (slower bool) {
	if iv.Instance != t.instance {
		t.instance, t.recent = iv.Instance, [2]pace{}
	}
	operations, nanos, length := t.recent[0].operations+t.recent[1].operations, t.recent[0].nanos+t.recent[1].nanos, float64(p.to-p.from)
	if t.recent[1].nanos >= recentMin {
		t.recent = [2]pace{t.recent[1], {}}
	}
	t.recent[1].operations += p.operations
	t.recent[1].nanos += length
	return 2*p.operations*nanos < operations*length
}

func (m *Means) of(iv *interval.Interval) *meansOf {
	return m.tracks.find(iv, func(key trackKey) *meansOf {
		track := &meansOf{vm: key.vm, windows: make([]meanOf, len(m.Windows))}
		m.order = append(m.order, track)
		return track
	})
}

// Of is the mean rate of a quantity in a window, for one VM or, with vm "", for the sum of all or their mean. It is NaN without data, and
// for quantities and combinations that are not of operations.
func (m *Means) Of(vm string, window int, q Quantity, aggregate string) float64 {
	if q != IOPS && q != Bandwidth || vm == "" && aggregate != "sum" && aggregate != "mean" {
		return nan
	}
	var done float64
	var all []interval.Gap
	byVM := map[string][]interval.Gap{}
	for _, track := range m.order {
		o := &track.windows[window]
		if vm != "" && track.vm != vm || len(o.ran) == 0 {
			continue
		}
		done += o.done(q)
		all = append(all, o.ran...)
		byVM[track.vm] = append(byVM[track.vm], o.ran...)
	}
	ran := lengthOf(all)
	if vm == "" && aggregate == "mean" {
		ran = 0
		for _, list := range byVM {
			ran += lengthOf(list)
		}
	}
	return done / ran * 1e9 // NaN without data
}

// done are the operations or bytes in the time that the track ran.
func (o *meanOf) done(q Quantity) float64 {
	inside, shared := o.operations, o.shared[0]
	if q == Bandwidth {
		inside, shared = o.bytes, o.shared[1]
	}
	if o.nanos == 0 {
		return inside + shared
	}
	return inside * lengthOf(o.ran) / float64(o.nanos)
}

// lengthOf is the time that any of the stretches covers, in nanoseconds.
func lengthOf(list []interval.Gap) float64 {
	var sum int64
	for _, g := range union(append([]interval.Gap{}, list...)) {
		sum += g.ToNanos - g.FromNanos
	}
	return float64(sum)
}
