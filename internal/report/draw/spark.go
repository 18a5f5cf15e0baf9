package draw

import (
	"math"

	"github.com/braggdev/bragg/internal/result"
)

const sparkRunes = "▁▂▃▄▅▆▇█"

// Sparkline divides the time from from to to (seconds) into columns stretches and draws their time-weighted means, scaled from
// zero to the largest. A stretch without data is a blank.
func Sparkline(points result.Points, from, to float64, columns int) string {
	means := ColumnMeans(points, from, to, columns)
	return SparkOf(means, Largest(means))
}

func ColumnMeans(points result.Points, from, to float64, columns int) []float64 {
	if columns < 1 || !(to > from) || len(points) == 0 {
		return nil
	}
	sums, weights := make([]float64, columns), make([]float64, columns)
	width := (to - from) / float64(columns)
	for i, p := range points {
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			continue
		}
		start, end := from, to // a single point stands for everything
		if len(points) > 1 {
			start, end = reach(points, i)
			start, end = max(start, from), min(end, to)
		}
		for c := max(0, int((start-from)/width)); c < columns && start < end; c++ {
			share := min(end, from+float64(c+1)*width) - max(start, from+float64(c)*width)
			if share > 0 {
				sums[c] += p.Value * share
				weights[c] += share
			}
		}
	}
	means := make([]float64, columns)
	for i := range means {
		means[i] = math.NaN()
		// A sliver at the border of a gap is not data of that column.
		if weights[i] > width/100 {
			means[i] = sums[i] / weights[i]
		}
	}
	return means
}

// reach is the time range that point i represents: halfway to its neighbors.
func reach(points result.Points, i int) (start, end float64) {
	at := points[i].Seconds
	before, after := at, at
	if i > 0 {
		before = points[i-1].Seconds
	}
	if i+1 < len(points) {
		after = points[i+1].Seconds
	}
	if i == 0 {
		before = 2*at - after
	}
	if i+1 == len(points) {
		after = 2*at - before
	}
	return (before + at) / 2, (at + after) / 2
}

// Largest returns the largest value, ignoring NaN, and at least 0.
func Largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	return top
}

// SparkOf draws values from zero up to top; NaN is a blank.
func SparkOf(values []float64, top float64) string {
	runes := []rune(sparkRunes)
	out := make([]rune, len(values))
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			out[i] = ' '
		case top == 0 || v <= 0:
			out[i] = runes[0]
		case v >= top: // also if both are infinite
			out[i] = runes[len(runes)-1]
		default:
			out[i] = runes[int(v/top*float64(len(runes)-1)+0.5)]
		}
	}
	return string(out)
}
