package analysis

import (
	"cmp"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/result"
)

// pieceMin is the length from which an interval is drawn as one piece: what happened within it is unknown, and a value in each of
// its seconds would claim to be measured.
const pieceMin = 3 * CellLength / 2

// piece is a long interval, or several that overlap, in nanoseconds since the start of the line's first cell.
type piece struct {
	from, to int64
	exact    float64 // NaN: the mean of its cells
}

// value is the quantity of one interval.
func (p *part) value(q Quantity) float64 {
	length := float64(p.to-p.from) / 1e9
	switch q {
	case IOPS:
		return p.operations / length
	case Bandwidth:
		return p.bytes / length
	case Service:
		return p.service / p.operations // NaN without operations
	case Response:
		return p.response / p.operations
	case Active:
		return min(p.operations, 1)
	}
	return nan
}

// piecesOf collects the long intervals of the tracks of one VM.
func (l *Line) piecesOf(tracks []*Track, q Quantity, origin int64) {
	if q == ErrorsSum { // counts are of the end of an interval anyway
		return
	}
	origin += int64(l.First) * int64(CellLength)
	for _, t := range tracks {
		for i := range t.long {
			p := piece{from: t.long[i].from - origin, to: t.long[i].to - origin, exact: nan}
			if len(tracks) == 1 {
				p.exact = t.long[i].value(q)
			}
			l.pieces = append(l.pieces, p)
		}
	}
	l.pieces = joinPieces(l.pieces)
}

// joinPieces makes one piece of those that overlap.
func joinPieces(list []piece) []piece {
	slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	out := list[:0]
	for _, p := range list {
		if n := len(out); n > 0 && p.from < out[n-1].to {
			out[n-1] = piece{from: out[n-1].from, to: max(out[n-1].to, p.to), exact: nan}
		} else {
			out = append(out, p)
		}
	}
	return out
}

// combinePieces are the pieces of a combination of lines: what is unknown within one line is unknown within the combination.
func combinePieces(lines []Line, how string) []piece {
	var all []piece
	for i := range lines {
		all = append(all, lines[i].pieces...)
	}
	all = joinPieces(all)
	if len(lines) == 1 || lines[0].Weights != nil || how != "sum" && how != "mean" {
		return all
	}
	for i := range all {
		p := &all[i]
		p.exact = 0
		for k := range lines {
			p.exact += lines[k].over(p.from, p.to)
		}
		if how == "mean" {
			p.exact /= float64(len(lines))
		}
	}
	return all
}

// over is the mean of a rate over a stretch: of its pieces there, and of the cells beside them. Without data the rate is 0.
func (l *Line) over(from, to int64) float64 {
	const cell = int64(CellLength)
	var sum float64
	at := from
	cells := func(until int64) {
		for ; at < until && at/cell < int64(len(l.Values)); at = min(until, (at/cell+1)*cell) {
			if v := l.Values[max(at, 0)/cell]; !isMissing(v) {
				sum += v * float64(min(until, (at/cell+1)*cell)-at)
			}
		}
		at = max(at, until)
	}
	for _, p := range l.pieces {
		if p.to <= at || p.from >= to || isMissing(p.exact) {
			continue
		}
		cells(p.from)
		sum += p.exact * float64(min(p.to, to)-at)
		at = min(p.to, to)
	}
	cells(to)
	return sum / float64(to-from)
}

// Pieced replaces the points of a line that long intervals reach into by two of equal value for each of these: at its start and at its
// end. A piece shorter than one and a half steps is left as it is.
func (g *Grid) Pieced(points result.Points, l Line, step time.Duration) (result.Points, []result.Piece) {
	step = max(step, CellLength)
	half := step.Seconds() / 2
	var pieces []result.Piece
	for _, p := range l.pieces {
		origin := g.OriginNanos + int64(l.First)*int64(CellLength)
		from, to := seconds(origin+p.from), seconds(origin+p.to)
		first := slices.IndexFunc(points, func(at result.Point) bool { return at.Seconds+half > from+borderSeconds })
		if p.to-p.from < 3*int64(step)/2 || first < 0 {
			continue
		}
		behind := first
		var sum, inside float64
		for ; behind < len(points) && points[behind].Seconds-half < to-borderSeconds; behind++ {
			share := min(points[behind].Seconds+half, to) - max(points[behind].Seconds-half, from)
			if v := points[behind].Value; !isMissing(v) && share > 0 {
				sum, inside = sum+v*share, inside+share
			}
		}
		value := p.exact
		if isMissing(value) {
			value = sum / inside
		}
		if isMissing(value) || behind == first {
			continue
		}
		from, to = max(from, points[first].Seconds-half), min(to, points[behind-1].Seconds+half)
		points = slices.Replace(points, first, behind, result.Point{Seconds: from, Value: value}, result.Point{Seconds: to, Value: value})
		pieces = append(pieces, result.Piece{FromSeconds: from, ToSeconds: to})
	}
	return points, pieces
}

// Outline is a line of which only the pieces are known, for another statistic of the same intervals.
func (l Line) Outline() Line {
	out := Line{First: l.First, pieces: slices.Clone(l.pieces)}
	for i := range out.pieces {
		out.pieces[i].exact = nan
	}
	return out
}

// borderSeconds is how far an interval may reach into a second that it is not part of.
const borderSeconds = float64(borderNanos) / 1e9
