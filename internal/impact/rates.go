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
	late       int     // seconds from the event on until a dip is late
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
	r.late = int((x.eventTo+lateOnset-grid.OriginNanos)/cell) - from
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
	counts []int
	noise  *noise
	late   int // from here on a stretch must be lateFactor as far below, if no dip continues there
}

const (
	// lateOnset is how long after an event has ended a dip may still begin to be its obvious effect.
	lateOnset = 5 * second
	// lateFactor: a platform has hiccups of its own, more rarely than a short baseline shows.
	lateFactor = 2
)

// factor is by how much a stretch from a second on must exceed its limit, if the dip before ended at end.
func (c *course) factor(from, end int) float64 {
	if from > max(c.late, end) {
		return lateFactor
	}
	return 1
}

func newCourse(values []float64, n *noise) *course {
	c := &course{values: values, noise: n, sums: make([]float64, len(values)+1), counts: make([]int, len(values)+1)}
	for i, v := range values {
		c.sums[i+1], c.counts[i+1] = c.sums[i], c.counts[i]
		if !math.IsNaN(v) {
			c.sums[i+1], c.counts[i+1] = c.sums[i]+v, c.counts[i]+1
		}
	}
	return c
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
func (c *course) dip() (at, length int, mean float64) {
	for _, w := range scales {
		if w > len(c.values) {
			break
		}
		length, mean = 0, math.Inf(1)
		limit := c.noise.limit(w, len(c.values))
		for i := 0; i+w <= len(c.values); i++ {
			if v := c.mean(i, i+w); v < mean && v < c.noise.mean-limit*c.factor(i, 0) {
				at, length, mean = i, w, v
			}
		}
		if length > 0 {
			return at, length, mean
		}
	}
	return 0, 0, math.NaN()
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
			if c.mean(i, i+w) < bound-limit*c.factor(i, end) {
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

// begin is the first second below a bound beyond chance, before one that is known to be.
func (c *course) begin(bound float64, known int) int {
	reversed := slices.Clone(c.values)
	slices.Reverse(reversed)
	back := newCourse(reversed, c.noise)
	if back.late = len(reversed); known > c.late {
		back.late = len(reversed) - known // an earlier stretch must be as far below as a late one
	}
	return len(reversed) - back.end(bound)
}
