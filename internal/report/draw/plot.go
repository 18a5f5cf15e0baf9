package draw

import (
	"math"
	"strings"
)

// XY is a point of a plot.
type XY struct{ X, Y float64 }

// Plot is a small chart of text: a curve and measured points over an axis that begins at zero.
type Plot struct {
	Curve, Points []XY
	XName, YName  string
	X, Y          func(float64) string // print a value at an axis
}

const (
	plotCurve = '·'
	plotPoint = '●'
	plotRows  = 10
)

// Lines draws the plot in width columns. Without points it has no lines.
func (p Plot) Lines(width int, style Style) []string {
	left, right, top := math.Inf(1), math.Inf(-1), 0.0
	for _, list := range [][]XY{p.Curve, p.Points} {
		for _, at := range list {
			left, right, top = min(left, at.X), max(right, at.X), max(top, at.Y)
		}
	}
	if !(right > left) || top == 0 {
		return nil
	}
	labels := []string{p.Y(top), "0"}
	margin := max(DisplayWidth(labels[0]), 1)
	columns := max(WidthMin, width-margin-2)
	cells := make([][]rune, plotRows)
	for y := range cells {
		cells[y] = []rune(strings.Repeat(" ", columns))
	}
	put := func(at XY, r rune) {
		x := int(math.Round((at.X - left) / (right - left) * float64(columns-1)))
		y := int(math.Round((1 - at.Y/top) * (plotRows - 1)))
		if x >= 0 && x < columns && y >= 0 && y < plotRows {
			cells[y][x] = r
		}
	}
	for i := 1; i < len(p.Curve); i++ {
		a, b := p.Curve[i-1], p.Curve[i]
		steps := max(1, int((b.X-a.X)/(right-left)*float64(columns))*2)
		for s := range steps + 1 {
			share := float64(s) / float64(steps)
			put(XY{a.X + (b.X-a.X)*share, a.Y + (b.Y-a.Y)*share}, plotCurve)
		}
	}
	for _, at := range p.Points {
		put(at, plotPoint)
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
