package analysis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/result"
)

// Quantity is the measured quantity of a series on the grid.
type Quantity string

const (
	IOPS      Quantity = "iops"
	Bandwidth Quantity = "bandwidth"
	ErrorsSum Quantity = "errors" // cumulative
	Active    Quantity = "active" // 1 where operations completed
	Service   Quantity = "service"
	Response  Quantity = "response"
)

// Line is a series on the grid: one value per cell from First on, NaN for missing data.
type Line struct {
	Name   string
	First  int
	Values []float64
	// Weights are operations per second for latencies, which are averaged by them; nil otherwise.
	Weights []float64
	// At has the times of cells that are not drawn at their midpoint, 0 for all others; nil if there are none.
	At []int64
	// Ends marks the cells in which a load of the VM ended without a rate, and Tails has the operations in those cells;
	// nil if there are none.
	Ends  []bool
	Tails []float64
	// Cut marks the cells in which an interval of the VM crosses the border of the extent; nil if there are none.
	Cut []bool
	// Cumulative: values count from the beginning of the line, so a combination keeps the last one of a line that has ended.
	Cumulative bool
	pieces     []piece
}

// Span is a half-open range of cells. A span too short to contain the midpoint of a cell is the cell around it, and At is the
// midpoint of the span; otherwise At is 0.
type Span struct {
	From, To int
	At       int64
}

// Span returns the cells whose midpoint is in [from, to) of the run's axis.
func (g *Grid) Span(from, to int64) Span {
	a, b := g.cellsOf(from, to)
	if b > a || to <= from || g.Cells == 0 {
		return g.withBrief(Span{From: a, To: max(a, b)}, from, to)
	}
	middle := from + (to-from)/2
	cell := g.cellAt(middle)
	return Span{From: cell, To: cell + 1, At: middle}
}

// withBrief adds the border cells with loads that were too short for a rate and ran at a time in [from, to).
func (g *Grid) withBrief(s Span, from, to int64) Span {
	has := func(cell int) bool {
		return slices.ContainsFunc(g.keys, func(k trackKey) bool {
			at, ok := g.tracks.byKey[k].of.brief[cell]
			return ok && from <= at && at < to
		})
	}
	if s.From < s.To && has(s.From-1) {
		s.From--
	}
	if s.From < s.To && has(s.To) {
		s.To++
	}
	return s
}

// VMLine adds up the tracks of one VM. A VM has a value in a cell if any of its tracks has one.
func (g *Grid) VMLine(name string, tracks []*Track, q Quantity, in Span) Line {
	l := Line{Name: name, First: in.From, Values: make([]float64, in.To-in.From), Cumulative: q == ErrorsSum}
	if q == Service || q == Response {
		l.Weights = make([]float64, in.To-in.From)
	}
	if in.At != 0 {
		l.at(0, in.At)
	}
	for i := range l.Values {
		l.Values[i] = nan
		if q == ErrorsSum {
			l.Values[i] = errorsOf(tracks, in.From+i)
			continue
		}
		for _, t := range tracks {
			l.addTrack(i, t, q)
			if t.cut[in.From+i] {
				l.cutAt(i)
			}
			if t.endsUndrawn(in.From + i) {
				l.endsAt(i, t.tails[in.From+i], q)
			}
		}
	}
	for i := range l.Weights {
		// The values are sums of nanoseconds up to here; a second without an operation has no latency.
		if l.Weights[i] > 0 {
			l.Values[i] /= l.Weights[i]
		} else {
			l.Values[i] = nan
		}
	}
	l.momentsOf(tracks)
	l.piecesOf(tracks, q, g.OriginNanos)
	for i, cut := range l.Cut {
		if cut {
			l.Values[i] = nan
		}
	}
	if q == ErrorsSum && len(l.Values) > 0 {
		l.fromZero(tracks)
	}
	return l
}

// errorsOf sums the errors of one VM's tracks up to the end of a cell, if any track has data for it; the count of a track
// without data does not fall.
func errorsOf(tracks []*Track, cell int) float64 {
	if !slices.ContainsFunc(tracks, func(t *Track) bool { return !isMissing(t.errorsAt(cell)) }) {
		return nan
	}
	sum := 0.0
	for _, t := range tracks {
		if v := t.errorsUntil(cell); !isMissing(v) {
			sum += v
		}
	}
	return sum
}

func (l *Line) addTrack(i int, t *Track, q Quantity) {
	cell := l.First + i
	var v float64
	switch q {
	case IOPS:
		v = t.rate(t.Operations, cell)
	case Bandwidth:
		v = t.rate(t.Bytes, cell)
	case Active:
		v = t.rate(t.Operations, cell)
		if v > 0 {
			v = 1
		}
	case Service:
		v = t.rate(t.Service, cell)
	case Response:
		v = t.rate(t.Response, cell)
	}
	if isMissing(v) {
		return
	}
	if isMissing(l.Values[i]) {
		l.Values[i] = 0
	}
	l.Values[i] += v
	if q == Active {
		l.Values[i] = min(l.Values[i], 1)
	}
	if l.Weights != nil {
		l.Weights[i] += t.rate(t.Operations, cell)
	}
}

// momentsOf draws cells in which only brief loads ran at the time of the first of them.
func (l *Line) momentsOf(tracks []*Track) {
	for i := range l.Values {
		moment, alone := int64(0), true
		for _, t := range tracks {
			if middle, brief := t.brief[l.First+i]; brief {
				moment = cmp.Or(moment, middle)
			} else if !isMissing(t.rate(t.Operations, l.First+i)) {
				alone = false
			}
		}
		if alone && moment != 0 {
			l.at(i, moment)
		}
	}
}

// at sets the time at which a cell is drawn; the first call for a cell wins.
func (l *Line) at(i int, moment int64) {
	if l.At == nil {
		l.At = make([]int64, len(l.Values))
	}
	if l.At[i] == 0 {
		l.At[i] = moment
	}
}

func (l *Line) cutAt(i int) {
	if l.Cut == nil {
		l.Cut = make([]bool, len(l.Values))
	}
	l.Cut[i] = true
}

func (l *Line) endsAt(i int, tail [2]float64, q Quantity) {
	if l.Ends == nil {
		l.Ends, l.Tails = make([]bool, len(l.Values)), make([]float64, len(l.Values))
	}
	l.Ends[i] = true
	switch q {
	case IOPS:
		l.Tails[i] += tail[0]
	case Bandwidth:
		l.Tails[i] += tail[1]
	}
}

// fromZero counts errors from the beginning of the line only.
func (l *Line) fromZero(tracks []*Track) {
	var before float64
	for _, t := range tracks {
		if v := t.errorsUntil(l.First - 1); l.First > 0 && !isMissing(v) {
			before += v
		}
	}
	for i := range l.Values {
		l.Values[i] -= before
	}
}

// Aggregates are the ways to make one line of several.
var Aggregates = []string{"sum", "min", "mean", "median", "max"}

// Combine combines lines that cover the same cells into one. Lines without a value in a cell are ignored; if no line has one, the
// result has none. The mean of latencies is weighted by operations, so it is the mean over all operations; their sum has no
// meaning, so it is computed the same way. In a cell in which a line ends without a rate, a sum includes the operations of that
// line; it has no value if no line continues beyond the cell, because the common end would look like a drop. No combination has a
// value in a cell in which a line is cut.
func Combine(lines []Line, how string) Line {
	if len(lines) == 0 {
		return Line{}
	}
	out := Line{Name: "all", First: lines[0].First, Values: make([]float64, len(lines[0].Values))}
	weighted := lines[0].Weights != nil && (how == "mean" || how == "sum")
	present := make([]float64, 0, len(lines))
	weights := make([]float64, 0, len(lines))
	for _, l := range lines {
		for i, moment := range l.At {
			middle := func(o Line) bool { return !isMissing(o.Values[i]) && (o.At == nil || o.At[i] == 0) }
			if moment != 0 && !slices.ContainsFunc(lines, middle) {
				out.at(i, moment)
			}
		}
	}
	out.pieces = combinePieces(lines, how)
	for i := range out.Values {
		if slices.ContainsFunc(lines, func(l Line) bool { return l.Cut != nil && l.Cut[i] }) {
			out.Values[i] = nan
			continue
		}
		present, weights = present[:0], weights[:0]
		tails, ends := 0.0, false
		for _, l := range lines {
			if l.Ends != nil && l.Ends[i] {
				tails, ends = tails+l.Tails[i], true
			}
		}
		if ends = ends && how == "sum" && !weighted; ends && !slices.ContainsFunc(lines, func(l Line) bool { return l.goesOn(i) }) {
			out.Values[i] = nan
			continue
		}
		out.Cumulative = lines[0].Cumulative
		if out.Cumulative && slices.ContainsFunc(lines, func(l Line) bool { return !isMissing(l.Values[i]) }) {
			out.Values[i] = combine(lastKnown(lines, i), how)
			continue
		}
		for _, l := range lines {
			if !isMissing(l.Values[i]) {
				present = append(present, l.Values[i])
				if weighted {
					weights = append(weights, l.Weights[i])
				}
			}
		}
		if weighted {
			out.Values[i] = weightedMean(present, weights)
		} else {
			out.Values[i] = combine(present, how)
			if ends {
				out.Values[i] += tails
			}
		}
	}
	return out
}

// lastKnown are the newest values of lines up to a cell.
func lastKnown(lines []Line, cell int) (list []float64) {
	for _, l := range lines {
		for i := cell; i >= 0; i-- {
			if !isMissing(l.Values[i]) {
				list = append(list, l.Values[i])
				break
			}
		}
	}
	return list
}

// goesOn reports whether a line has a value at cell i and at the next one.
func (l *Line) goesOn(i int) bool {
	return i+1 < len(l.Values) && !isMissing(l.Values[i]) && !isMissing(l.Values[i+1])
}

func weightedMean(values, weights []float64) float64 {
	var sum, weight float64
	for i, v := range values {
		sum += v * weights[i]
		weight += weights[i]
	}
	return sum / weight // NaN without values
}

// combine computes one value; it changes the order of values.
func combine(values []float64, how string) float64 {
	if len(values) == 0 {
		return nan
	}
	switch how {
	case "min":
		return slices.Min(values)
	case "max":
		return slices.Max(values)
	case "median":
		return medianOf(values)
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	if how == "mean" {
		sum /= float64(len(values))
	}
	return sum
}

// medianOf sorts values.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Resample averages a line over steps of several cells; a latency by operations, a cumulative count by its last value. A step is
// missing if more than half of its cells are.
func (l Line) Resample(step time.Duration, q Quantity) (points []float64, cells int) {
	cells = max(1, int((step+CellLength/2)/CellLength))
	if cells == 1 {
		return l.Values, 1
	}
	for from := 0; from < len(l.Values); from += cells {
		to := min(from+cells, len(l.Values))
		points = append(points, l.step(from, to, q))
	}
	return points, cells
}

func (l Line) step(from, to int, q Quantity) float64 {
	var sum, weight, last float64
	n := 0
	for i := from; i < to; i++ {
		if isMissing(l.Values[i]) {
			continue
		}
		w := 1.0
		if l.Weights != nil {
			w = l.Weights[i]
		}
		sum += w * l.Values[i]
		weight += w
		last = l.Values[i]
		n++
	}
	switch {
	case n == 0 || 2*n < to-from && l.Weights == nil:
		return nan
	case q == ErrorsSum:
		return last
	case q == Active:
		return math.Ceil(sum / weight)
	}
	return sum / weight
}

// Points places the values of a line, resampled by step, at the middle of their stretch on the run's axis.
func (g *Grid) Points(l Line, step time.Duration, q Quantity) result.Points {
	values, cells := l.Resample(step, q)
	points := make(result.Points, len(values))
	for i, v := range values {
		from := l.First + i*cells
		to := min(from+cells, l.First+len(l.Values))
		middle := g.OriginNanos + (int64(from)+int64(to))*int64(CellLength)/2
		if to-from == 1 && l.At != nil && l.At[from-l.First] != 0 {
			middle = l.At[from-l.First]
		}
		points[i] = result.Point{Seconds: seconds(middle), Value: v}
	}
	return points
}
