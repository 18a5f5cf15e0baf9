package analysis

import (
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// Grid holds, for every workload on every VM, the operations in each whole second of the run's axis. Generators end their
// intervals at whole seconds, so an interval is one cell, except for the first and the last of a load; an interval that is
// not aligned is distributed over the seconds that it covers, in proportion to time.
//
// At the edges of a load, a second is covered in part. Its rate is that of the covered part; a second of which less than half is
// covered has no rate. The last interval of a load with a runtime is not drawn: it has the operations that were in flight when
// the runtime ended, and its rate is neither that of the load nor that of the storage. For a load that ran until its data was
// processed, it is part of the work, and is merged into the second before if it is short.
//
// A load that takes less than half a second is drawn with its average rate at the midpoint of its duration, because it
// would not be visible otherwise.
//
// VMs that start together end within the same second, but some just before nine tenths of it and some after. A sum over
// the VMs that happen to have a rate there would drop to a fraction, so a sum has no value in such a second. If other VMs
// continue beyond it, as with loads that end one after another, the sum is the operations in that second (see Combine).
//
// A second at the border of the extent has no rate if an interval crosses the border, and neither has any combination of
// VMs that includes such an interval.
type Grid struct {
	OriginNanos int64 // a whole second
	Cells       int
	SizeBound   SizeBound
	Extent      Extent

	from, to int64
	tracks   tracks[Track]
	keys     []trackKey
}

// Track is one workload on one VM. The slices begin at the cell First and have the same length.
type Track struct {
	Workload, Group, VM string
	Prefill             bool

	First   int
	Covered []float32 // seconds of the cell that intervals cover
	// Operations, Bytes, Service and Response are the totals for that time. Service and Response are sums of nanoseconds, equal
	// in a closed loop, and NaN if the generator measures no latency.
	Operations []float32
	Bytes      []float32
	Service    []float32
	Response   []float32
	// Errors counts failed operations since the first interval; empty while none has failed.
	Errors  []float64
	failed  float64
	pending *part
	// ends are the cells in which a load with a runtime ended.
	ends map[int]bool
	// lasted is how long the current load has run, in nanoseconds; brief are the midpoints of loads that were too short for a
	// rate, by their cell.
	lasted int64
	// tails are the operations and bytes of last intervals that are not drawn, by cell.
	tails    map[int][2]float64
	instance int
	brief    map[int]int64
	// cut are the cells in which an interval crosses the border of the extent.
	cut map[int]bool
	// long are intervals that are drawn as one piece.
	long []part
}

// coveredMin is how many seconds of a cell must be covered for it to have a rate.
const coveredMin = 0.5

// NewGrid covers [from, to) of the run's axis in whole seconds.
func NewGrid(from, to int64) *Grid {
	cell := int64(CellLength)
	origin := from - ((from%cell)+cell)%cell
	return &Grid{OriginNanos: origin, Cells: int((to - origin + cell - 1) / cell), from: from, to: to}
}

// Drain reports whether an interval consists almost only of operations that were in flight when the runtime of a load
// ended.
func Drain(iv *interval.Interval, bound SizeBound) bool {
	return iv.Final && !bound.Of(iv) && iv.LengthNanos < 9*int64(CellLength)/10
}

// Add takes one interval. Intervals of one workload and VM must come in their order. Intervals shorter than half a second are
// first joined into stretches of about a second.
func (g *Grid) Add(iv *interval.Interval) {
	if iv.EndNanos() <= g.OriginNanos || iv.StartNanos >= g.end() {
		return
	}
	t := g.track(iv)
	if iv.Instance != t.instance {
		t.instance, t.lasted = iv.Instance, 0 // the previous one was cut off
	}
	begun := t.lasted > 0
	t.lasted += iv.LengthNanos
	brief := float64(t.lasted)/1e9 < coveredMin // so far
	p := partOf(iv)
	if !g.Extent.Holds(iv) {
		g.leaveOut(t, iv, &p)
		return
	}
	if iv.Final && !g.SizeBound.Of(iv) {
		t.end(g.cellAt(p.from), g.cellAt(p.to-1))
	}
	if Drain(iv, g.SizeBound) && begun && !brief {
		g.flush(t)
		t.fail(g.shownCell(p.to-1), p.failed)
		g.addTail(t, &p)
		t.lasted = 0
		return
	}
	if t.pending != nil && p.from-t.pending.to < int64(CellLength)/10 {
		t.pending.join(p)
	} else {
		g.flush(t)
		t.pending = &p
	}
	short := p.to-p.from < int64(CellLength)/2
	if !short || iv.Final || t.pending.to-t.pending.from >= 19*int64(CellLength)/20 {
		g.flush(t)
	}
	if iv.Final {
		t.joinTail()
		t.noteBrief(iv.EndNanos() - t.lasted/2)
		t.lasted = 0
	}
}

// leaveOut handles an interval that is not within the extent: if it overlaps the extent, its failures count, the rest does not.
func (g *Grid) leaveOut(t *Track, iv *interval.Interval, p *part) {
	g.flush(t)
	if iv.Final {
		t.lasted = 0
	}
	if !g.Extent.Meets(p.from, p.to) {
		return
	}
	if t.cut == nil {
		t.cut = map[int]bool{}
	}
	for c := g.cellAt(p.from); c <= g.cellAt(p.to-1); c++ {
		t.cut[c] = true
	}
	t.fail(g.shownCell(p.to-1), p.failed)
}

// addTail records the operations of a last interval, by the seconds that it covers.
func (g *Grid) addTail(t *Track, p *part) {
	if t.tails == nil {
		t.tails = map[int][2]float64{}
	}
	cell := int64(CellLength)
	length := float64(max(p.to-p.from, 1))
	for c := g.cellAt(p.from); c <= g.cellAt(p.to-1); c++ {
		start := g.OriginNanos + int64(c)*cell
		share := float64(min(p.to, start+cell)-max(p.from, start)) / length
		sum := t.tails[c]
		t.tails[c] = [2]float64{sum[0] + p.operations*share, sum[1] + p.bytes*share}
	}
}

// Close adds the intervals that are waiting to be joined. Afterwards the Grid can be read.
func (g *Grid) Close() {
	for _, t := range g.tracks.byKey {
		g.flush(t.of)
	}
}

func (g *Grid) flush(t *Track) {
	if t.pending == nil {
		return
	}
	p := t.pending
	t.pending = nil
	if p.to-p.from >= int64(pieceMin) {
		t.long = append(t.long, *p)
	}
	cell := int64(CellLength)
	length := float64(max(p.to-p.from, 1))
	for c := g.cellAt(p.from); c <= g.cellAt(p.to-1); c++ {
		start := g.OriginNanos + int64(c)*cell
		overlap := min(p.to, start+cell) - max(p.from, start)
		if overlap > 0 {
			t.add(c, p, float64(overlap)/length, float64(overlap)/1e9)
		}
	}
	t.fail(g.shownCell(p.to-1), p.failed)
}

// cellAt returns the cell for a time, clamped to the grid.
func (g *Grid) cellAt(at int64) int {
	return int(min(max((at-g.OriginNanos)/int64(CellLength), 0), int64(g.Cells)-1))
}

// shownCell returns the cell for a time, or the nearest cell whose midpoint is within the grid, so that a failure in a
// partial second at the border is not lost.
func (g *Grid) shownCell(at int64) int {
	first, behind := g.cellsOf(g.from, g.to)
	if behind <= first {
		return g.cellAt(at)
	}
	return min(max(g.cellAt(at), first), behind-1)
}

func (g *Grid) end() int64 { return g.OriginNanos + int64(g.Cells)*int64(CellLength) }

// CellStart returns the start of the first cell whose midpoint is at or after a time.
func (g *Grid) CellStart(at int64) int64 {
	first, _ := g.cellsOf(at, at)
	return g.OriginNanos + int64(first)*int64(CellLength)
}

// cellsOf returns the cells whose midpoint is in [from, to).
func (g *Grid) cellsOf(from, to int64) (first, behind int) {
	cell := int64(CellLength)
	index := func(at int64) int {
		i := (at - g.OriginNanos - cell/2 + cell - 1)
		if i < 0 {
			return 0
		}
		return int(min(i/cell, int64(g.Cells)))
	}
	return index(from), index(to)
}

// part is a stretch of one track with its operations.
type part struct {
	from, to                             int64
	operations, bytes, service, response float64
	failed                               float64
}

func partOf(iv *interval.Interval) part {
	p := part{from: iv.StartNanos, to: iv.EndNanos()}
	for d := range iv.Directions {
		t := &iv.Directions[d]
		p.operations += float64(t.Operations)
		p.bytes += float64(t.Bytes)
		p.failed += float64(t.ErrorCount())
		switch {
		case t.Service != nil && !t.Late():
			p.service += t.Service.Sum()
			p.response += t.ResponseOrService().Sum()
		case t.Operations > 0: // a generator that measures no latency, or states it at the end
			p.service, p.response = nan, nan
		}
	}
	return p
}

func (p *part) join(o part) {
	p.to = o.to
	p.operations += o.operations
	p.bytes += o.bytes
	p.service += o.service
	p.response += o.response
	p.failed += o.failed
}

func (g *Grid) track(iv *interval.Interval) *Track {
	return g.tracks.find(iv, func(key trackKey) *Track {
		g.keys = append(g.keys, key)
		return &Track{Workload: key.workload, Group: key.group, VM: key.vm, Prefill: key.prefill, First: -1}
	})
}

// add puts a share of a part into a cell.
func (t *Track) add(cell int, p *part, share, covered float64) {
	if t.First < 0 {
		t.First = cell
	}
	if cell < t.First {
		t.shift(t.First - cell)
	}
	i := cell - t.First
	for len(t.Covered) <= i {
		t.Covered = append(t.Covered, 0)
		t.Operations = append(t.Operations, 0)
		t.Bytes = append(t.Bytes, 0)
		t.Service = append(t.Service, 0)
		t.Response = append(t.Response, 0)
	}
	t.Covered[i] += float32(covered)
	t.Operations[i] += float32(p.operations * share)
	t.Bytes[i] += float32(p.bytes * share)
	t.Service[i] += float32(p.service * share)
	t.Response[i] += float32(p.response * share)
}

// joinTail merges a last second that is covered less than half into the previous one.
func (t *Track) joinTail() {
	last := len(t.Covered) - 1
	if last < 1 || t.Covered[last] >= coveredMin || t.Covered[last-1] == 0 {
		return
	}
	for _, s := range []*[]float32{&t.Covered, &t.Operations, &t.Bytes, &t.Service, &t.Response} {
		(*s)[last-1] += (*s)[last]
		*s = (*s)[:last]
	}
}

// noteBrief records where to draw a load that has ended and never covered enough of a second.
func (t *Track) noteBrief(middle int64) {
	if t.lasted <= 0 || float64(t.lasted)/1e9 >= coveredMin || len(t.Covered) == 0 {
		return
	}
	if t.brief == nil {
		t.brief = map[int]int64{}
	}
	t.brief[t.First+len(t.Covered)-1] = middle
}

func (t *Track) end(first, last int) {
	if t.ends == nil {
		t.ends = map[int]bool{}
	}
	for c := first; c <= last; c++ {
		t.ends[c] = true
	}
}

// endsUndrawn reports whether a load that ran before ended in a cell without covering enough of it for a rate.
func (t *Track) endsUndrawn(cell int) bool {
	return t.ends[cell] && t.First >= 0 && t.First < cell && isMissing(t.rate(t.Operations, cell))
}

// fail notes that n more operations had failed by the end of a cell.
func (t *Track) fail(cell int, n float64) {
	if t.failed += n; t.failed == 0 {
		return
	}
	if t.First < 0 {
		t.First = cell
	}
	last := 0.0
	if n := len(t.Errors); n > 0 {
		last = t.Errors[n-1]
	}
	i := max(cell-t.First, 0)
	for len(t.Errors) <= i {
		t.Errors = append(t.Errors, last)
	}
	for ; i < len(t.Errors); i++ {
		t.Errors[i] = t.failed
	}
}

// shift makes room in front, for an interval that was delivered late.
func (t *Track) shift(n int) {
	for _, s := range []*[]float32{&t.Covered, &t.Operations, &t.Bytes, &t.Service, &t.Response} {
		*s = append(make([]float32, n), *s...)
	}
	if t.Errors != nil {
		t.Errors = append(make([]float64, n), t.Errors...)
	}
	t.First -= n
}

// Tracks returns the tracks for which keep is true, sorted by VM and workload.
func (g *Grid) Tracks(keep func(t *Track) bool) []*Track {
	var list []*Track
	for _, key := range g.keys {
		if t := g.tracks.byKey[key].of; keep(t) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *Track) int {
		if c := strings.Compare(a.VM, b.VM); c != 0 {
			return c
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	return list
}

// rate returns the value of s per second at a cell of the grid, NaN if it is missing.
func (t *Track) rate(s []float32, cell int) float64 {
	i := cell - t.First
	if t.First < 0 || i < 0 || i >= len(s) || t.Covered[i] <= 0 {
		return nan
	}
	if _, brief := t.brief[cell]; t.cut[cell] || !brief && t.Covered[i] < coveredMin {
		return nan
	}
	return float64(s[i]) / float64(t.Covered[i])
}

// errorsAt returns the number of errors up to the end of a cell, or NaN where no interval covers it: before the first interval,
// after the last one, and while a VM is down that comes back later, because the number of operations that failed during that time
// is unknown.
func (t *Track) errorsAt(cell int) float64 {
	if t.First < 0 || cell < t.First || cell > t.lastCovered() {
		return nan
	}
	sum, before := t.errorsUntil(cell), t.errorsUntil(cell-1)
	_, brief := t.brief[cell]
	i := cell - t.First
	told := brief || i < len(t.Covered) && t.Covered[i] >= coveredMin // as for a rate
	if !told && (sum == 0 || sum == before) {
		return nan
	}
	return sum
}

// lastCovered is the last cell that any interval covers.
func (t *Track) lastCovered() int {
	for i := len(t.Covered) - 1; i >= 0; i-- {
		if t.Covered[i] > 0 {
			return max(t.First+i, t.First+len(t.Errors)-1)
		}
	}
	return t.First + len(t.Errors) - 1
}

// errorsUntil is the number of errors known at the end of a cell, however long ago the last report was.
func (t *Track) errorsUntil(cell int) float64 {
	switch n := len(t.Errors); {
	case t.First < 0 || cell < t.First:
		return nan
	case n == 0:
		return 0
	default:
		return t.Errors[min(cell-t.First, n-1)]
	}
}
