package impact

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/analysis"
)

// bandwidthFrom is the mean size of an operation from which a load is judged by bandwidth.
const bandwidthFrom = 64 << 10

// rates are the seconds of one load around one event, VM by VM.
type rates struct {
	grid       *analysis.Grid
	quantity   analysis.Quantity
	base, look analysis.Span
	grain      float64 // of the quantity, of one operation
	near       proximity
	vms        map[string]*vmRates
}

// vmRates is one VM: per quantity its seconds in the baseline, their mean, and its seconds from the event on, NaN for unknown ones.
type vmRates struct {
	known      int // seconds of the baseline
	missing    int // seconds from the event on
	operations pair
	chosen     pair
}

type pair struct {
	base, look []float64
	mean       float64
}

func newRates(grid *analysis.Grid, x *exposure) *rates {
	r := &rates{grid: grid, quantity: analysis.IOPS, grain: 1, vms: map[string]*vmRates{}}
	cell := int64(analysis.CellLength)
	r.base = grid.Span(x.baseline.FromNanos+cell/2, x.baseline.ToNanos-cell/2)
	if r.base.At != 0 || x.baseline.ToNanos == 0 {
		r.base = analysis.Span{}
	}
	from := max(0, int((x.fromNanos-grid.OriginNanos)/cell))
	r.look = analysis.Span{From: from, To: max(from, min(grid.Cells, int((x.untilNanos-grid.OriginNanos)/cell)))}
	index := func(at int64) int { return int((at-grid.OriginNanos)/cell) - from }
	r.near = proximity{index(x.fromNanos + lateOnset), index(x.eventTo - lateOnset), index(x.eventTo + lateOnset)}
	tracks := grid.Tracks(func(t *analysis.Track) bool {
		return t.Workload == x.start.Workload && !t.Prefill && x.watches[t.VM] != nil
	})
	var operations, bytes float64
	for _, t := range tracks {
		v := &vmRates{operations: r.pair(t, analysis.IOPS), chosen: r.pair(t, analysis.Bandwidth)}
		for i, n := range v.operations.base {
			if !math.IsNaN(n) {
				operations, bytes, v.known = operations+n, bytes+v.chosen.base[i], v.known+1
			}
		}
		r.vms[t.VM] = v
	}
	if bytes >= bandwidthFrom*operations && bytes > 0 {
		r.quantity, r.grain = analysis.Bandwidth, bytes/operations
	}
	for vm, v := range r.vms {
		if r.quantity == analysis.IOPS {
			v.chosen = v.operations
		}
		x.complete(v, vm)
	}
	return r
}

// pair reads one quantity of one VM.
func (r *rates) pair(t *analysis.Track, q analysis.Quantity) pair {
	p := pair{
		base: r.grid.VMLine(t.VM, []*analysis.Track{t}, q, r.base).Values,
		look: r.grid.VMLine(t.VM, []*analysis.Track{t}, q, r.look).Values,
	}
	sum, known := 0.0, 0
	for _, v := range p.base {
		if !math.IsNaN(v) {
			sum, known = sum+v, known+1
		}
	}
	p.mean = sum / float64(max(known, 1))
	return p
}

// complete decides what a second without data means: a VM that the event took away, or that never delivered again, did nothing. Of
// any other, a second that is followed by data is unknown, and one after its load had ended does not count.
func (x *exposure) complete(v *vmRates, vm string) {
	look := v.operations.look
	last := len(look)
	for last > 0 && math.IsNaN(look[last-1]) {
		last--
	}
	gone := x.gone(vm)
	for i := range look {
		if !math.IsNaN(look[i]) {
			continue
		}
		switch {
		case i < last && x.taken[vm], i >= last && gone:
			v.operations.look[i], v.chosen.look[i] = 0, 0
		case i < last:
			v.missing++
		}
	}
}

// course is the seconds of several VMs together, from the event on. A second in which some VM is unknown is scaled to all of them, by
// their baselines.
func (r *rates) course(vms []string, of func(*vmRates) *pair) (base, look []float64) {
	base, look = make([]float64, r.base.To-r.base.From), make([]float64, r.look.To-r.look.From)
	all := 0.0
	for _, vm := range vms {
		all += of(r.vms[vm]).mean
	}
	together := func(out []float64, in func(*pair) []float64) {
		for i := range out {
			sum, expected := 0.0, 0.0
			for _, vm := range vms {
				p := of(r.vms[vm])
				if v := in(p)[i]; !math.IsNaN(v) {
					sum, expected = sum+v, expected+p.mean
				}
			}
			if out[i] = math.NaN(); expected > 0 {
				out[i] = sum * all / expected
			}
		}
	}
	together(base, func(p *pair) []float64 { return p.base })
	together(look, func(p *pair) []float64 { return p.look })
	return base, look
}

// measured are the VMs with data in at least half of the baseline.
func (r *rates) measured(vms []string) []string {
	return slices.DeleteFunc(slices.Clone(vms), func(vm string) bool {
		v := r.vms[vm]
		return v == nil || 2*v.known < r.base.To-r.base.From || v.known == 0
	})
}

// course is a series of seconds with its sums.
type course struct {
	values []float64
	sums   []float64
	calms  []float64 // sums of the values, each at most one limit of a second below the baseline
	counts []int
	noise  *noise
	near   proximity
}

// proximity tells which seconds are close to the begin or the end of an event, so that a dip there is its obvious effect. A platform has
// hiccups of its own, more rarely than a short baseline shows, so a late dip must be longer and deeper.
type proximity struct{ begun, ends, ended int }

const (
	// lateOnset is how far from the begin or the end of an event a dip is late.
	lateOnset = 5 * second
	// lateScale is the shortest stretch that shows a late dip, in seconds, and lateFactor by how much it must exceed its limit.
	lateScale  = 10
	lateFactor = 2
)

func (p proximity) holds(from, to int) bool { return from <= p.begun || to > p.ends && from <= p.ended }

// below reports whether a stretch of w seconds is below a bound beyond chance; continued, if a dip is known to reach it.
func (c *course) below(from, w int, bound, limit float64, continued bool) bool {
	v := c.mean(from, from+w)
	if w >= lateScale {
		v = c.calm(from, from+w)
	}
	switch {
	case !(v < bound-limit):
		return false
	case continued || c.near.holds(from, from+w):
		return true
	}
	return w >= lateScale && v < bound-lateFactor*limit
}

func newCourse(values []float64, n *noise) *course {
	size := len(values) + 1
	c := &course{values: values, noise: n, sums: make([]float64, size), calms: make([]float64, size), counts: make([]int, size)}
	floor := n.mean - n.limit(1, len(values))
	for i, v := range values {
		c.sums[i+1], c.calms[i+1], c.counts[i+1] = c.sums[i], c.calms[i], c.counts[i]
		if !math.IsNaN(v) {
			c.sums[i+1], c.calms[i+1], c.counts[i+1] = c.sums[i]+v, c.calms[i]+max(v, floor), c.counts[i]+1
		}
	}
	return c
}

// calm is the mean of [from, to) with regard to how many seconds are low and not to how low one of them is: a hiccup of one second
// must not count as a loss of a minute.
func (c *course) calm(from, to int) float64 {
	if math.IsNaN(c.mean(from, to)) {
		return math.NaN()
	}
	return (c.calms[to] - c.calms[from]) / float64(c.counts[to]-c.counts[from])
}

// mean of the known values in [from, to), NaN if fewer than half are known.
func (c *course) mean(from, to int) float64 {
	known := c.counts[to] - c.counts[from]
	if known == 0 || 2*known < to-from {
		return math.NaN()
	}
	return (c.sums[to] - c.sums[from]) / float64(known)
}

// lowest is the stretch of w seconds with the lowest mean.
func (c *course) lowest(w int) (at int, mean float64) {
	mean = math.Inf(1)
	for i := 0; i+w <= len(c.values); i++ {
		if v := c.mean(i, i+w); v < mean {
			at, mean = i, v
		}
	}
	return at, mean
}

// dip is the shortest stretch whose mean is below the baseline beyond chance, the deepest of that length. Length 0: there is none.
func (c *course) dip() (at, length int) {
	return c.deepest(0, len(c.values), func(i, w int, limit float64) bool { return c.below(i, w, c.noise.mean, limit, false) })
}

// deepest is the lowest of the stretches in [from, to) that count, of the shortest length that has any.
func (c *course) deepest(from, to int, counts func(i, w int, limit float64) bool) (at, length int) {
	for _, w := range scales {
		lowest, limit := math.Inf(1), c.noise.limit(w, len(c.values))
		for i := from; i+w <= to; i++ {
			if v := c.mean(i, i+w); v < lowest && counts(i, w, limit) {
				at, length, lowest = i, w, v
			}
		}
		if length > 0 {
			return at, length
		}
	}
	return 0, 0
}

// end is the second after the last one below a bound beyond chance, 0 if none is. Stretches of every scale are searched, the shortest
// first, because a longer one that contains a deep second says nothing about its other seconds.
func (c *course) end(bound float64) int {
	end := 0
	for _, w := range scales {
		if w > len(c.values) {
			break
		}
		limit := c.noise.limit(w, len(c.values))
		for i := end; i+w <= len(c.values); i++ {
			if c.below(i, w, bound, limit, end > 0 && i <= end) {
				last := i + w
				for last > i && !(c.values[last-1] < bound) {
					last--
				}
				end = max(end, last)
			}
		}
	}
	return end
}

// begin is the first second below a bound beyond chance, up to one that is known to be.
func (c *course) begin(bound float64, known int) int {
	begin := known
	for _, w := range scales {
		limit := c.noise.limit(w, len(c.values))
		for i := begin - w; i >= 0; i-- {
			if c.below(i, w, bound, limit, i+w >= begin) {
				first := i
				for first < i+w && !(c.values[first] < bound) {
					first++
				}
				begin = min(begin, first)
			}
		}
	}
	return begin
}
