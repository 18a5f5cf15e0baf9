package draw

import (
	"math"
	"strings"
)

// XY is a point of a plot.
type XY struct{ X, Y float64 }

// Plot is a small chart of text: a curve and measured points over an axis that begins at zero, or at From.
type Plot struct {
	Curve, Points []XY
	Curves        [][]XY // further ones, drawn as Curve is
	Level         []XY   // the ends of a line of its own kind
	Marked        []XY   // points that stand out
	From          float64
	XName, YName  string
	X, Y          func(float64) string // print a value at an axis
}

const (
	plotCurve = '·'
	plotPoint = '●'
	plotLevel = '╌'
	plotMark  = '◆'
	plotRows  = 10
)

// Lines draws the plot in width columns. Without points it has no lines.
func (p Plot) Lines(width int, style Style) []string {
	left, right, top := math.Inf(1), math.Inf(-1), p.From
	for _, list := range append([][]XY{p.Curve, p.Points, p.Level}, p.Curves...) {
		for _, at := range list {
			left, right, top = min(left, at.X), max(right, at.X), max(top, at.Y)
		}
	}
	if !(right > left) || top <= p.From {
		return nil
	}
	labels := []string{p.Y(top), "0"}
	if p.From != 0 {
		labels[1] = p.Y(p.From)
	}
	margin := max(DisplayWidth(labels[0]), DisplayWidth(labels[1]))
	columns := max(WidthMin, width-margin-2)
	cells := make([][]rune, plotRows)
	for y := range cells {
		cells[y] = []rune(strings.Repeat(" ", columns))
	}
	put := func(at XY, r rune) {
		x := int(math.Round((at.X - left) / (right - left) * float64(columns-1)))
		y := int(math.Round((1 - (at.Y-p.From)/(top-p.From)) * (plotRows - 1)))
		if x >= 0 && x < columns && y >= 0 && y < plotRows {
			cells[y][x] = r
		}
	}
	trace := func(curve []XY, r rune) {
		for i := 1; i < len(curve); i++ {
			a, b := curve[i-1], curve[i]
			steps := max(1, int((b.X-a.X)/(right-left)*float64(columns))*2)
			for s := range steps + 1 {
				share := float64(s) / float64(steps)
				put(XY{a.X + (b.X-a.X)*share, a.Y + (b.Y-a.Y)*share}, r)
			}
		}
	}
	trace(p.Level, plotLevel)
	for _, curve := range append([][]XY{p.Curve}, p.Curves...) {
		trace(curve, plotCurve)
	}
	for _, at := range p.Points {
		put(at, plotPoint)
	}
	for _, at := range p.Marked {
		put(at, plotMark)
	}
	out := []string{style.Dim(p.YName)}
	for y, row := range cells {
		label := ""
		switch y {
		case 0:
			label = labels[0]
		case plotRows - 1:
			label = labels[1]
		}
		out = append(out, strings.TrimRight(strings.Repeat(" ", margin-DisplayWidth(label))+label+" │"+string(row), " "))
	}
	low, high := p.X(left), p.X(right)+" "+p.XName
	out = append(out, strings.Repeat(" ", margin)+" └"+strings.Repeat("─", columns))
	return append(out, strings.Repeat(" ", margin+2)+low+strings.Repeat(" ", max(1, columns-DisplayWidth(low)-DisplayWidth(high)))+high)
}
